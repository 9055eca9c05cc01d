"""Which operands oneDNN is given as they are."""

from collections.abc import Hashable

import numpy as np

from burn.backend.onednn.cache import Primitives
from burn.backend.onednn.memory import Array, address, is_dense, of_array, strided
from burn.backend.onednn.noting import compact, empty
from burn.backend.onednn.prepared import Prepared

FLOAT32 = np.dtype(np.float32)


def are_float32(*operands: Array | None) -> bool:
    """Whether all operands that are there are float32: the one dtype of the engine."""
    for operand in operands:
        if operand is not None and operand.dtype != FLOAT32:
            return False
    return True


def form(operand: Array | None) -> Hashable:
    """What a primitive depends on of an operand, which is float32."""
    return None if operand is None else (operand.shape, operand.strides)


class Arranged:
    """An operand in the layout that a primitive was made for, copied if it has another.

    ``wanted`` are strides in elements, of an array without gaps.
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
        if lies_as(shape, like.strides, wanted):
            return
        # Slowest first; axes of one element have the strides of their neighbours.
        order = sorted(range(len(shape)), key=lambda axis: (-wanted[axis], axis))
        self._order, self._back = tuple(order), tuple(np.argsort(order).tolist())
        if is_dense(like):
            source = of_array(primitives.api, shape, like.strides)
            target = strided(primitives.api, shape, wanted)
            self._reorder = primitives.reorder(source, target)

    def __call__(self, operand: Array) -> Array:
        """``operand``, or a copy in the wanted layout."""
        if self._order is None:
            return operand
        if self._reorder is None:
            plain = compact(operand.transpose(self._order))
            return plain.transpose(self._back)
        copy = empty(tuple(self._shape[axis] for axis in self._order))
        self._reorder.run(address(operand), address(copy))
        return copy.transpose(self._back)


def in_channels_last(x: Array) -> Array:
    """``x`` [N, C, *size] such that its channels are side by side."""
    axes = (0, *range(2, x.ndim), 1)
    back = (0, x.ndim - 1, *range(1, x.ndim - 1))
    return compact(x.transpose(axes)).transpose(back)


def lies_as(
    shape: tuple[int, ...], strides: tuple[int, ...], wanted: tuple[int, ...]
) -> bool:
    """Whether ``strides`` of NumPy are ``wanted``, but for axes of one element."""
    return all(
        extent == 1 or step == FLOAT32.itemsize * other
        for extent, step, other in zip(shape, strides, wanted, strict=True)
    )
