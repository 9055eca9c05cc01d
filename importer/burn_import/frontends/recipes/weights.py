"""The weights of a state dict, and which of them a recipe has used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from burn.dtypes import DType, bfloat16, float16, float32, name_of
from burn.record.errors import shown
from burn_import.frontends.checkpoints.checkpoint import LazyTensor
from burn_import.frontends.recipes.config import NotClaimed
from burn_ir import InvalidModel
from burn_ir.types import Array

#: Floats that float32 has all of. Layers hold float32, and so do tables of angles.
NARROW = (bfloat16, float16)
#: What the first versions of BERT call the parts of a norm.
_OLD = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


class Weights:
    """Tensors by key, read when they are asked for, as float32 if they are narrower.

    ``used`` has those that were read; ``check_used`` tells of the others. Keys are
    those of today.
    """

    def __init__(self, tensors: Mapping[str, LazyTensor]) -> None:
        self.tensors = {_renamed(key): tensor for key, tensor in tensors.items()}
        self.used: set[str] = set()
        self._counts = _counted(self.tensors)

    def __contains__(self, key: str) -> bool:
        return key in self.tensors

    def array(self, key: str) -> Array:
        """The tensor at ``key``.

        Raises:
            InvalidModel: there is none, or none of its elements.
        """
        self.used.add(key)
        tensor = self._tensor(key)
        if 0 in tensor.shape:
            form = f"shape {list(tensor.shape)}"
            raise InvalidModel(f"weight {shown(key)}: expected elements, got {form}")
        narrow = tensor.dtype in NARROW
        return tensor.array().astype(np.float32) if narrow else tensor.array()

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence that says which weights became wider, if any did."""
        used = {t.dtype for key, t in self.tensors.items() if key in self.used}
        names = " and ".join(name_of(dtype) for dtype in NARROW if dtype in used)
        note = f"The file has weights of {names}; they are float32 here, exactly."
        return (note,)[: len(names)]

    def shape(self, key: str) -> tuple[int, ...]:
        """The shape of the tensor at ``key``."""
        return self._tensor(key).shape

    def dtype(self, key: str) -> DType:
        """The dtype of the array at ``key``."""
        dtype = self._tensor(key).dtype
        return float32 if dtype in NARROW else dtype

    def _tensor(self, key: str) -> LazyTensor:
        if key not in self.tensors:
            raise NotClaimed(f"expected a weight {shown(key)}, found none")
        return self.tensors[key]

    def count(self, prefix: str) -> int:
        """Return the number of numbered modules below ``prefix``."""
        return self._counts.get(prefix, 0)

    def ignore(self, *keys: str) -> None:
        """Leave weights out that the model computes by itself."""
        self.used.update(keys)

    def check_used(self) -> None:
        """Return if every weight was used.

        Raises:
            NotClaimed: some were not; they are listed.
        """
        left = [key for key in self.tensors if key not in self.used]
        if left:
            names = ", ".join(shown(key) for key in left[:_MOST])
            more = f" and {len(left) - _MOST} more" if len(left) > _MOST else ""
            raise NotClaimed(f"weights that the architecture lacks: {names}{more}")


_MOST = 8


def _renamed(key: str) -> str:
    old = next((end for end in _OLD if key.endswith(end)), "")
    return key.removesuffix(old) + _OLD[old] if old else key


def _counted(keys: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for key in keys:
        segments = key.split(".")
        for index, segment in enumerate(segments):
            if segment.isdecimal() and len(segment) < _MOST:
                prefix = ".".join(segments[:index])
                counts[prefix] = max(counts.get(prefix, 0), int(segment) + 1)
    return counts
