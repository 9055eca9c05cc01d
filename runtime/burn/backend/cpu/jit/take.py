"""Reading at computed indices along one axis as machine code."""

from functools import cache
from math import prod
from typing import Any

import numpy as np

from burn.backend.cpu.jit.functions import is_known
from burn.backend.cpu.jit.gather_scatter import INDICES, Place, gather_kernel, wrapped
from burn.backend.cpu.jit.native import INT64, FunctionWriter, kernel_of, stored
from burn.backend.cpu.jit.source import Kernel
from burn.ops.support import Array


def take_kernel(
    source: Array, indices: Array, axis: int, target: Array
) -> Kernel | None:
    """Return the kernel of ``source.take(indices, axis, target)``; None for NumPy's."""
    axis %= source.ndim
    rows, size = prod(source.shape[:axis]), prod(source.shape[axis + 1 :])
    is_supported = is_known(source.dtype) and indices.dtype in INDICES
    if is_supported and source.size and target.size and source.dtype == target.dtype:
        views = [
            _try_view(source, (rows, source.shape[axis], size)),
            _try_view(target, (rows, indices.size, size)),
            _try_view(indices, (indices.size,)),
        ]
        if all(view is not None and view.flags.aligned for view in views):
            return _row_kernel(*views)
    return gather_kernel(
        Place(source, (*_places(source, indices, axis), indices)), target
    )


def _try_view(array: Array, shape: tuple[int, ...]) -> Array | None:
    """Return ``array`` in another shape, None if that is no view."""
    view = array.reshape(shape)
    return view if np.may_share_memory(view, array) else None


def _places(source: Array, indices: Array, axis: int) -> list[Array]:
    """Return the indices of all elements along the axes before ``axis``."""
    before = [1] * (indices.ndim + axis)
    places: list[Array] = []
    for number in range(axis):
        shape = list(before)
        shape[number] = source.shape[number]
        places.append(np.arange(source.shape[number]).reshape(shape))
    return places


def _row_kernel(source: Array, target: Array, indices: Array) -> Kernel:
    """Return the kernel for [rows, extent, size] and [rows, indices, size]."""
    size, item = source.shape[2], source.itemsize
    is_dense = size > 1 and source.strides[2] == target.strides[2] == item
    numbers = (*target.shape, source.shape[1], *indices.strides)
    numbers += (*source.strides, *target.strides)
    text = _source(source.dtype, indices.dtype, size == 1, is_dense)
    return kernel_of(text, numbers, target.size * 2, [source, target, indices])


@cache
def _source(
    dtype: np.dtype[Any], kind: np.dtype[Any], is_single: bool, is_dense: bool
) -> str:
    to = FunctionWriter()
    source, target, indices = (to.word("ptr") for _ in range(3))
    rows, count, size, extent, step = to.words(5)
    reads, writes = to.words(3), to.words(3)
    if is_dense:  # known, so that rows are copied by vectors
        reads[2] = writes[2] = str(dtype.itemsize)

    with to.nested([rows, count]) as (row, number):
        index = to.load(kind, to.at(indices, (number, step)))
        if kind != INT64:
            index = to.do(f"sext {stored(kind)} {index} to i64")
        index, is_outside = wrapped(to, index, extent)
        to.fail_if(is_outside)
        first = to.at(source, (row, reads[0]), (index, reads[1]))
        second = to.at(target, (row, writes[0]), (number, writes[1]))
        if is_single:
            to.store(dtype, to.load(dtype, first), second)
        else:
            with to.nested([size]) as (inner,):
                value = to.load(dtype, to.at(first, (inner, reads[2])))
                to.store(dtype, value, to.at(second, (inner, writes[2])))
    return to.text()
