"""Blocks of Keras's functional models, whose layers have flat names.

``keras.applications`` names the layers of a block ``conv2_block1_1_conv`` and
``conv2_block1_1_bn``, ``block_3_expand`` and ``block_3_expand_BN``, or
``expanded_conv_3_expand`` and ``expanded_conv_3_project``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from burn_import.provenance.path_segments import Path

#: The name of a block up to its number, after TF-Slim's operator, and that of a layer.
_BLOCK = re.compile(
    r"(?:(?:conv|bn|activation)_)?(\w*?block_?\d+[a-z]?|expanded_conv_\d+)_(\w+)",
    re.ASCII,
)
_NUMBER_FIRST = re.compile(r"(\d+)_(\w+)", re.ASCII)
#: The fewest layers of a block.
_FEWEST = 2


def block_scopes(layers: Iterable[Path]) -> Callable[[Path], Path]:
    """Return a function that splits the names of layers in blocks: block, then layer.

    ``layers`` are the scopes of all layers. A prefix that only one layer has, or that
    is the name of another layer, is no block.
    """
    names: dict[Path, set[str]] = {}
    taken = set(layers)
    for scope in taken:
        for length, segment in enumerate(scope):
            if match := _BLOCK.fullmatch(segment):
                names.setdefault((*scope[:length], match[1]), set()).add(segment)
    blocks = {
        path for path, own in names.items() if len(own) >= _FEWEST and path not in taken
    }

    def split(scope: Path) -> Path:
        path: list[str] = []
        for length, segment in enumerate(scope):
            match = _BLOCK.fullmatch(segment)
            if match is None or (*scope[:length], match[1]) not in blocks:
                path.append(segment)
                continue
            layer = _NUMBER_FIRST.sub(r"\2_\1", match[2])  # `1_conv` is no identifier
            path += match[1], layer
        return tuple(path)

    return split
