"""oneDNN memory descriptors of arrays."""

import ctypes
from typing import Annotated, Any, TypeAlias

import numpy as np

from burn import dtypes
from burn.backend.cpu.onednn.binding.api import (
    ANY_LAYOUT,
    BFLOAT16,
    FLOAT32,
    INT8,
    INT32,
    UINT8,
    Api,
    dims,
)
from burn.backend.cpu.onednn.binding.capture import SINGLE, empty, empty_as

#: An array of NumPy.
Array: TypeAlias = Annotated[Any, "array"]

# The offset of the data pointer in an array object, which is its first field.
# ``array.ctypes.data`` takes ten times as long as the rest of the work for an operand.
_FIRST_FIELD = object.__basicsize__

#: The library's data types by dtype.
KINDS = {
    dtypes.float32: FLOAT32,
    dtypes.bfloat16: BFLOAT16,
    dtypes.int32: INT32,
    dtypes.int8: INT8,
    dtypes.uint8: UINT8,
}


class Handle:
    """An owned oneDNN handle, which is destroyed with this object.

    Functions take the object itself, which keeps it alive while they run. Pointers
    borrowed from the handle are valid while this object lives.
    """

    __slots__ = ("_as_parameter_", "_destroy", "value")

    def __init__(self, api: Api, kind: str, create: str, *args: Any) -> None:
        self.value = self._as_parameter_ = api.create(create, *args)
        self._destroy = getattr(api, f"destroy_{kind}")

    def __del__(self) -> None:
        # A handle that could not be created has nothing to destroy.
        if hasattr(self, "_destroy"):
            self._destroy(self.value)


def strided(
    api: Api,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype[Any] = SINGLE,
) -> Handle:
    """Return the descriptor of an array of ``shape`` with ``strides`` in elements."""
    where = (len(shape), dims(shape), KINDS[dtype], dims(strides))
    return Handle(api, "memory_desc", "memory_desc_create_with_strides", *where)


def of_array(api: Api, array: Any) -> Handle:
    """Return the descriptor of an array, from its shape, strides and dtype."""
    size = array.dtype.itemsize
    steps = tuple(step // size for step in array.strides)
    return strided(api, array.shape, steps, array.dtype)


def matrix_strides(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of matrices [..., M, N], with dense ones for extents of 1.

    In NumPy an axis of extent 1 may have any stride. oneDNN derives the leading
    dimension from it, and fails if it is too small.
    """
    *batch, rows, columns = shape
    row, column = strides[-2:]
    if columns == 1:
        column = 1
    if rows == 1:
        row = columns if column == 1 else 1
    dense = [column, row]
    span = max(columns * column, rows * row)
    for extent, step in zip(batch[::-1], strides[-3::-1], strict=True):
        dense.append(span if extent == 1 else step)
        span = max(span, extent * dense[-1])
    return tuple(dense[::-1])


def any_layout(
    api: Api, shape: tuple[int, ...], dtype: np.dtype[Any] = SINGLE
) -> Handle:
    """Return the descriptor of an array whose layout the primitive may choose."""
    where = (len(shape), dims(shape), KINDS[dtype], ANY_LAYOUT)
    return Handle(api, "memory_desc", "memory_desc_create_with_tag", *where)


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides in elements of a row-major array of ``shape``."""
    return ordered(shape, tuple(range(len(shape))))


def channels_last(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides in elements of a channels-last array [N, C, *size]."""
    return ordered(shape, (0, *range(2, len(shape)), 1))


def ordered(shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides in elements for axes of ``shape`` in the memory ``order``."""
    strides, step = [0] * len(shape), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def empty_channels_last(shape: tuple[int, ...], dtype: np.dtype[Any] = SINGLE) -> Array:
    """Return new channels-last memory for [N, C, *size]."""
    rank = len(shape)
    memory = empty((shape[0], *shape[2:], shape[1]), dtype)
    return memory.transpose(0, rank - 1, *range(1, rank - 1))


def lines(
    api: Api, x: Array, dtype: np.dtype[Any], order: tuple[int, ...] | None
) -> tuple[Handle, Handle]:
    """Return the descriptors of ``x``, and of a result of ``dtype`` with its shape.

    The result has the memory order of ``x``, or ``order``.
    """
    if order is None:
        source, target = (strided(api, (x.size,), (1,), d) for d in (x.dtype, dtype))
        return source, target
    return of_array(api, x), strided(api, x.shape, ordered(x.shape, order), dtype)


def empty_in_order(
    x: Array, dtype: np.dtype[Any], order: tuple[int, ...] | None
) -> Array:
    """Return new memory with the shape of ``x``, in its memory order or ``order``."""
    if order is None:
        return empty_as(x, dtype)
    memory = empty(tuple(x.shape[axis] for axis in order), dtype)
    return memory.transpose(np.argsort(order).tolist())


def is_dense(array: Any) -> bool:
    """Return whether an array has no gaps, broadcast axes or negative strides."""
    step = array.dtype.itemsize
    places = sorted(
        (stride, extent)
        for stride, extent in zip(array.strides, array.shape, strict=True)
        if extent > 1
    )
    for stride, extent in places:
        if stride != step:
            return False
        step *= extent
    return True


def address(array: Array) -> int:
    """Return the address of the first element of ``array``."""
    pointer = ctypes.c_void_p.from_address(id(array) + _FIRST_FIELD)
    return pointer.value or 0


def addresses_are_read() -> bool:
    """Return whether :func:`address` works with this version of Python and NumPy."""
    array = np.empty(3, np.float32)
    return address(array) == array.ctypes.data
