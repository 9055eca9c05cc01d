"""Lazily read tensors of files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from burn.record import Record, ShardedRecord
from burn.record.dtypes import Array, DType
from burn.tensor import Tensor


class StoredTensor(Protocol):
    """A tensor whose dtype and shape are known, and whose values are read on demand.

    ``array()`` may have any strides, and an address that is not aligned for its dtype.
    """

    @property
    def dtype(self) -> DType: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    def array(self) -> Array: ...


class InMemory(NamedTuple):
    """A tensor or an array in memory."""

    values: Tensor | Array

    @property
    def dtype(self) -> DType:
        return self.values.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape)

    def array(self) -> Array:
        values = self.values
        return values if isinstance(values, np.ndarray) else values.numpy()


class Recorded(NamedTuple):
    """A tensor of a record."""

    record: Record | ShardedRecord
    name: str

    @property
    def dtype(self) -> DType:
        return self.record.info(self.name)[0]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.record.info(self.name)[1]

    def array(self) -> Array:
        return self.record[self.name]


class TransposedTensor(NamedTuple):
    """The transpose of a stored matrix."""

    tensor: StoredTensor

    @property
    def dtype(self) -> DType:
        return self.tensor.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape[::-1]

    def array(self) -> Array:
        return self.tensor.array().T


@dataclass(frozen=True, eq=False)
class Content:
    """The tensors of a file, and the reasons why other entries are excluded.

    ``has_precision`` means that dtypes are those of a precision and not the module's.
    """

    tensors: Mapping[str, StoredTensor]
    skipped: Mapping[str, str] = field(default_factory=dict)
    has_precision: bool = False


def laid_out(array: Array) -> Array:
    """Return ``array`` in C-contiguous, aligned memory.

    The rounding of sums depends on the memory layout, so this makes results of loaded
    weights bitwise independent of the file. Suitable arrays are not copied.
    """
    return np.require(array, requirements=["C_CONTIGUOUS", "ALIGNED"])


def is_changeable(array: Array) -> bool:
    """Return whether other code can write to the memory of ``array``.

    Bytes and read-only mapped files cannot be written, so they are used without a copy;
    other arrays are copied when a module is set from them.
    """
    owner: object = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return True
        if owner.base is None:
            return False
        owner = owner.base
    try:
        return not memoryview(owner).readonly  # type: ignore[arg-type]
    except TypeError:
        return True
