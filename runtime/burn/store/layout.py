"""Burn's keys and memory layouts of a module's state.

Burn calls the two vectors of a normalization gamma and beta, and stores the matrix of a
linear layer as [in, out]. Layers declare this in ``names_in_burn`` and
``turned_in_burn``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from burn.store.tensors import StoredTensor, TransposedTensor

if TYPE_CHECKING:
    from burn.nn.module import Module


def keys_in_burn(module: Module) -> dict[str, tuple[str, bool]]:
    """Return Burn's key where it differs, and whether the matrix is transposed."""
    keys = {}
    for path, part in module.modules():
        start = f"{path}." if path else ""
        for name in {*part.names_in_burn, *part.turned_in_burn}:
            theirs = part.names_in_burn.get(name, name)
            keys[start + name] = (start + theirs, name in part.turned_in_burn)
    return keys


def from_burn(
    tensors: Mapping[str, StoredTensor], module: Module
) -> dict[str, StoredTensor]:
    """Return tensors by Burn's keys under the keys of ``module``."""
    ours = {theirs: (key, turn) for key, (theirs, turn) in keys_in_burn(module).items()}
    result = {}
    for name, tensor in tensors.items():
        key, turn = ours.get(name, (name, False))
        if key != name and key in tensors:  # the file has both, and one is too many
            key, turn = name, False
        result[key] = TransposedTensor(tensor) if turn else tensor
    return result


def to_burn(
    tensors: Mapping[str, StoredTensor], module: Module
) -> dict[str, StoredTensor]:
    """Return tensors of ``module`` under Burn's keys."""
    theirs = keys_in_burn(module)
    result = {}
    for key, tensor in tensors.items():
        name, turn = theirs.get(key, (key, False))
        result[name] = TransposedTensor(tensor) if turn else tensor
    return result
