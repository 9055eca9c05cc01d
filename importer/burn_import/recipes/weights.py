"""The weights of a state dict, and which of them a recipe has used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from burn.dtypes import DType
from burn.record.errors import shown
from burn_import.pytorch.checkpoint import LazyTensor
from burn_ir import InvalidModel
from burn_ir.types import Array


class Weights:
    """Tensors by key, read when they are asked for.

    ``used`` has those that were read; ``check_used`` tells of the others.
    """

    def __init__(self, tensors: Mapping[str, LazyTensor]) -> None:
        self.tensors = tensors
        self.used: set[str] = set()
        self._counts = _counted(tensors)

    def __contains__(self, key: str) -> bool:
        return key in self.tensors

    def array(self, key: str) -> Array:
        """The tensor at ``key``.

        Raises:
            InvalidModel: there is none.
        """
        self.used.add(key)
        return self._tensor(key).array()

    def shape(self, key: str) -> tuple[int, ...]:
        """The shape of the tensor at ``key``."""
        return self._tensor(key).shape

    def dtype(self, key: str) -> DType:
        """The dtype of the tensor at ``key``."""
        return self._tensor(key).dtype

    def _tensor(self, key: str) -> LazyTensor:
        if key not in self.tensors:
            raise InvalidModel(f"expected a weight {shown(key)}, found none")
        return self.tensors[key]

    def count(self, prefix: str) -> int:
        """How many numbered parts there are below ``prefix``."""
        return self._counts.get(prefix, 0)

    def ignore(self, *keys: str) -> None:
        """Leave weights out that the model computes by itself."""
        self.used.update(keys)

    def check_used(self) -> None:
        """Return if every weight was used.

        Raises:
            InvalidModel: some were not; they are listed.
        """
        left = [key for key in self.tensors if key not in self.used]
        if left:
            names = ", ".join(shown(key) for key in left[:_MOST])
            more = f" and {len(left) - _MOST} more" if len(left) > _MOST else ""
            raise InvalidModel(f"weights that the architecture lacks: {names}{more}")


_MOST = 8


def _counted(keys: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for key in keys:
        segments = key.split(".")
        for place, segment in enumerate(segments):
            if segment.isdecimal() and len(segment) < _MOST:
                prefix = ".".join(segments[:place])
                counts[prefix] = max(counts.get(prefix, 0), int(segment) + 1)
    return counts
