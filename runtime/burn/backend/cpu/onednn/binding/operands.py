"""Checks of operands that oneDNN supports without conversion."""

from collections.abc import Hashable

import numpy as np

from burn import dtypes
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import compact, empty
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    address,
    is_dense,
    of_array,
    strided,
)
from burn.backend.cpu.onednn.binding.prepared import Prepared

FLOAT32, BFLOAT16 = dtypes.float32, dtypes.bfloat16


def are_float32(*operands: Array | None) -> bool:
    """Return whether all present operands are float32 arrays, not Python numbers."""
    for operand in operands:
        if operand is None:
            continue
        if isinstance(operand, int | float) or operand.dtype != FLOAT32:
            return False
    return True


def is_computed(x: Array) -> bool:
    """Return whether oneDNN has activations, pooling and norms for ``x``'s dtype."""
    return x.dtype in (FLOAT32, BFLOAT16)


def are_multiplied(x: Array, y: Array, *others: Array | None) -> bool:
    """Return whether oneDNN has products of ``x`` and ``y``, float32 or bfloat16.

    The addends ``others`` have the same dtype, or float32.
    """
    dtype = x.dtype
    if dtype != y.dtype or not is_computed(x):
        return False
    for other in others:
        if other is not None and other.dtype not in (dtype, FLOAT32):
            return False
    return True


def form(operand: Array | None) -> Hashable:
    """Return the cache key of an operand."""
    if operand is None:
        return None
    return (operand.shape, operand.strides, operand.dtype.char)


class Arranged:
    """A conversion of an operand to the layout of a primitive, if it has another.

    ``wanted`` are strides in elements, of a dense array.
    """

    __slots__ = ("_back", "_order", "_reorder", "_shape")

    def __init__(
        self, primitives: Primitives, like: Array, wanted: tuple[int, ...]
    ) -> None:
        shape = like.shape
        self._shape = shape
        self._order: tuple[int, ...] | None = None
        self._back: tuple[int, ...] = ()
        self._reorder: Prepared | None = None
        if lies_as(like, wanted):
            return
        # Slowest first; axes of one element have the strides of their neighbors.
        order = sorted(range(len(shape)), key=lambda axis: (-wanted[axis], axis))
        self._order, self._back = tuple(order), tuple(np.argsort(order).tolist())
        if is_dense(like):
            source = of_array(primitives.api, like)
            target = strided(primitives.api, shape, wanted, like.dtype)
            self._reorder = primitives.reorder(source, target)

    def __call__(self, operand: Array) -> Array:
        """Return ``operand``, or a copy in the required layout."""
        if self._order is None:
            return operand
        if self._reorder is None:
            plain = compact(operand.transpose(self._order))
            return plain.transpose(self._back)
        copy = empty(tuple(self._shape[axis] for axis in self._order), operand.dtype)
        self._reorder.run(address(operand), address(copy))
        return copy.transpose(self._back)


def in_channels_last(x: Array) -> Array:
    """Return ``x`` [N, C, *size] in channels-last memory."""
    axes = (0, *range(2, x.ndim), 1)
    back = (0, x.ndim - 1, *range(1, x.ndim - 1))
    return compact(x.transpose(axes)).transpose(back)


def lies_as(array: Array, wanted: tuple[int, ...]) -> bool:
    """Return whether ``array`` has the ``wanted`` strides, but for extents of 1."""
    size = array.dtype.itemsize
    return all(
        extent == 1 or step == size * other
        for extent, step, other in zip(array.shape, array.strides, wanted, strict=True)
    )
