"""Paths of modules from the segments of names: ``encoder.layers.0``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from burn_import.tracing.identifiers import attribute

#: The attributes that lead from the root to a module.
Path = tuple[str, ...]

#: The attribute that stands for the model where its keys begin with numbers.
ROOT = "layers"
#: Modules inside modules; nobody nests them deeper, but a file may say so.
_DEEPEST = 24
_SEPARATORS = re.compile(r"[./]")
_LIST_INDEX = re.compile(r"0|[1-9][0-9]{0,3}")


def clean(segments: Sequence[str]) -> Path:
    """Path segments as identifiers; numbers stay numbers, in a list of the model's."""
    path: list[str] = []
    for segment in segments:
        for piece in _SEPARATORS.split(segment):
            if piece:
                path.append(piece if _is_number(piece) else attribute(piece))
    del path[_DEEPEST:]
    return (ROOT, *path) if path and path[0].isdigit() else tuple(path)


def _is_number(piece: str) -> bool:
    """Whether a segment is a place in a list: ``12``; not ``012`` and not a date."""
    return _LIST_INDEX.fullmatch(piece) is not None


def common(paths: Sequence[Path]) -> Path:
    """The longest path that all of ``paths`` start with."""
    first, last = min(paths), max(paths)
    length = 0
    while length < min(len(first), len(last)) and first[length] == last[length]:
        length += 1
    return first[:length]
