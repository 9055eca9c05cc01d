"""Strided memory layout of a program's tensors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from burn_ir.dim import Dim
from burn_ir.types import Array

#: The most elements whose positions are computed one by one.
_LARGEST = 2**24


@dataclass(frozen=True)
class Layout:
    """A strided layout: element at ``offset`` plus indices times ``strides``."""

    dims: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    offset: Dim

    @property
    def is_ordered(self) -> bool:
        """Whether the elements are contiguous in row-major order."""
        expected: Dim = 1
        for extent, stride in zip(self.dims[::-1], self.strides[::-1], strict=True):
            if extent != 1 and stride != expected:
                return False
            expected = expected * extent
        return True

    def places(self) -> Array | None:
        """Return the position of each element; None if it varies, or for too many."""
        numbers = [*self.dims, *self.strides, self.offset]
        fixed = [n for n in numbers if isinstance(n, int)]
        if len(fixed) != len(numbers):
            return None
        rank = len(self.dims)
        return element_positions(fixed[:rank], fixed[rank:-1], fixed[-1])


#: The layout of a tensor, computed on demand.
LazyLayout: TypeAlias = Callable[[], Layout]


def element_positions(
    dims: Sequence[int], strides: Sequence[int], offset: int
) -> Array | None:
    """Return offset plus indices times strides; None if too many or too large."""
    count, last = 1, offset
    for extent, stride in zip(dims, strides, strict=True):
        count, last = count * extent, last + max(extent - 1, 0) * stride
    if not 0 <= count <= _LARGEST or not 0 <= last < 2**62:
        return None
    layout = np.full(tuple(dims), offset, np.int64)
    for axis, (extent, stride) in enumerate(zip(dims, strides, strict=True)):
        shape = [extent if a == axis else 1 for a in range(len(dims))]
        layout += (np.arange(extent) * stride).reshape(shape)
    return layout
