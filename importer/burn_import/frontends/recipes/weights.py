"""Weights of a state dict, with a record of those that a recipe has used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from burn.dtypes import DType, bfloat16, float16, float32, name_of
from burn.record.errors import shown
from burn_import.frontends.checkpoints.checkpoint import LazyTensor
from burn_import.frontends.recipes.config import NotClaimed
from burn_ir import InvalidModel
from burn_ir.types import Array

#: Floating dtypes that are converted to float32 exactly, the dtype of layers.
NARROW = (bfloat16, float16)
#: Names of a norm's parameters in the first versions of BERT.
_OLD = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


class Weights:
    """Tensors by key, read on demand; narrower floats become float32.

    ``used`` has the keys that were read. Keys of old versions are replaced by current
    ones.
    """

    def __init__(self, tensors: Mapping[str, LazyTensor]) -> None:
        self.tensors = {_current_key(key): tensor for key, tensor in tensors.items()}
        self.used: set[str] = set()
        self._counts = _count_modules(self.tensors)

    def __contains__(self, key: str) -> bool:
        return key in self.tensors

    def array(self, key: str) -> Array:
        """Return the tensor at ``key``.

        Raises:
            InvalidModel: the key is missing, or the tensor is empty.
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
        """A sentence about weights that were widened, if any."""
        used = {t.dtype for key, t in self.tensors.items() if key in self.used}
        names = " and ".join(name_of(dtype) for dtype in NARROW if dtype in used)
        note = f"The file has weights of {names}; they are float32 here, exactly."
        return (note,)[: len(names)]

    def shape(self, key: str) -> tuple[int, ...]:
        """Return the shape of the tensor at ``key``."""
        return self._tensor(key).shape

    def dtype(self, key: str) -> DType:
        """Return the dtype of the array at ``key``."""
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
        """Mark weights as used that the model computes itself."""
        self.used.update(keys)

    def check_used(self) -> None:
        """Check that every weight was used.

        Raises:
            NotClaimed: lists the unused weights.
        """
        unused = [key for key in self.tensors if key not in self.used]
        if unused:
            names = ", ".join(shown(key) for key in unused[:_MOST])
            more = f" and {len(unused) - _MOST} more" if len(unused) > _MOST else ""
            raise NotClaimed(f"weights that the architecture lacks: {names}{more}")


_MOST = 8


def _current_key(key: str) -> str:
    old = next((end for end in _OLD if key.endswith(end)), "")
    return key.removesuffix(old) + _OLD[old] if old else key


def _count_modules(keys: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for key in keys:
        segments = key.split(".")
        for index, segment in enumerate(segments):
            if segment.isdecimal() and len(segment) < _MOST:
                prefix = ".".join(segments[:index])
                counts[prefix] = max(counts.get(prefix, 0), int(segment) + 1)
    return counts
