"""Memory orders of images and weights."""

from dataclasses import dataclass
from typing import Any

from burn.backend.cuda.kernels.elementwise.elements import copy_in_order
from burn.backend.cuda.kernels.elementwise.printing import STORED
from burn.ops.support import Array

#: Below this number of elements, custom kernels make copies.
_MOST = 2**31
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """The memory order of images and weights."""

    channels_last: bool

    def strides(self, shape: Shape) -> Shape:
        """Return the strides, in elements, of a dense array [N, C, *size]."""
        strides, step = [0] * len(shape), 1
        for axis in reversed(self.order(len(shape))):
            strides[axis] = step
            step *= shape[axis]
        return tuple(strides)

    def of(self, array: Array) -> Array:
        """Return ``array``, or a copy in this layout at an aligned address."""
        size = array.itemsize
        wanted = zip(
            *(array.shape, array.strides, self.strides(array.shape)), strict=True
        )
        is_laid_out = all(e == 1 or have == step * size for e, have, step in wanted)
        if is_laid_out and array.data.ptr % 16 == 0:
            return array
        if array.dtype in STORED and 0 < array.size < _MOST:
            return copy_in_order(array, self.order(array.ndim))
        out = self.empty(array.shape, array.dtype)
        out[...] = array
        return out

    def order(self, rank: int) -> tuple[int, ...]:
        """Return the axes from the slowest to the fastest in memory."""
        return (0, *range(2, rank), 1) if self.channels_last else tuple(range(rank))

    def empty(self, shape: Shape, dtype: Any) -> Array:
        """Return a new array of ``shape`` in this layout."""
        import cupy

        if not self.channels_last:
            return cupy.empty(shape, dtype)
        rank = len(shape)
        last = cupy.empty((shape[0], *shape[2:], shape[1]), dtype)
        return last.transpose(0, rank - 1, *range(1, rank - 1))
