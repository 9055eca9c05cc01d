"""Names for symbolic axes of inputs that have only an exporter's counters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

#: Names of the axes of an input, by its rank.
AXES: Mapping[int, Sequence[str]] = {
    1: ("length",),
    2: ("batch", "length"),
    3: ("batch", "length", "length"),
    4: ("batch", "channels", "height", "width"),
    5: ("batch", "channels", "depth", "height", "width"),
}
#: Counted symbols of ``torch.export``, tf2onnx and paddle2onnx.
_COUNTED = re.compile(r"s\d+|u\d+|unk__\d+|(p2o[._])?DynamicDimension[._]\d+")


#: Texts that exporters write for an extent without a name.
_PLACEHOLDERS = frozenset({"-1", "None", "none", "null", "unk", "unknown"})


def is_placeholder(text: str) -> bool:
    """Return whether an extent's name is none: "", ``?``, ``-1``, ``None``.

    Two axes with a placeholder need not be equal.
    """
    return text in _PLACEHOLDERS or not any(c.isalnum() for c in text)


def is_counted(text: str) -> bool:
    """Return whether an extent's name is a counter: ``s77``, ``unk__749``."""
    return _COUNTED.fullmatch(text) is not None


def axis_name(axis: int, fixed: Sequence[bool]) -> str:
    """Return the name of an axis of an input, "" where its rank has none.

    ``fixed`` tells for each axis whether its extent is a number. A symbolic axis 1
    before a fixed last one is the height of a channels-last image.
    """
    rank = len(fixed)
    names = list(AXES.get(rank, ()))
    if rank > 3 and fixed[-1] and not fixed[1]:
        names = [names[0], *names[2:], names[1]]
    return names[axis] if axis < len(names) else ""
