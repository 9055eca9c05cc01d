"""Reading and writing at computed indices as machine code."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from burn.backend.cpu.jit.functions import is_known, write
from burn.backend.cpu.jit.native import (
    INT64,
    FunctionWriter,
    kernel_of,
    stored,
)
from burn.backend.cpu.jit.source import Kernel
from burn.ops.support import Array

#: The most axes of index arrays, and the most index arrays, that a kernel has.
MOST = 6
#: How elements of a target are combined with others; the first replaces them.
COMBINE = ("copy", "add", "multiply", "maximum", "minimum")
#: The dtypes of index arrays.
INDICES = (np.dtype(np.int32), INT64)


class Place(NamedTuple):
    """An array that is read or written, with index arrays for its first axes."""

    array: Array
    indices: tuple[Array, ...]


def gather_kernel(source: Place, target: Array) -> Kernel | None:
    """Return the kernel of reading ``array[indices]``, None if it is NumPy's."""
    return _index_kernel("read", source, target)


def scatter_kernel(name: str, target: Place, values: Array) -> Kernel | None:
    """Return the kernel of ``ufunc.at`` on ``array[indices]``; None for NumPy's."""
    return _index_kernel(name, target, values)


def _index_kernel(name: str, indexing: Place, other: Array) -> Kernel | None:
    array, indices = indexing
    rest = array.shape[len(indices) :]
    if not 0 < len(indices) <= min(MOST, array.ndim) or not is_known(array.dtype):
        return None
    shape = np.broadcast_shapes(*(index.shape for index in indices))
    if any(index.dtype not in INDICES for index in indices) or len(shape) > MOST:
        return None
    if other.dtype != array.dtype or 0 in (*shape, *array.shape):
        return None
    if name == "read" and other.shape != (*shape, *rest):
        return None
    if len(np.broadcast_shapes(other.shape, (*shape, *rest))) != len((*shape, *rest)):
        return None
    other = np.broadcast_to(other, (*shape, *rest))
    inner = _run(array, other, len(rest))
    if inner is None or not all(a.flags.aligned for a in (array, other, *indices)):
        return None
    wide = [np.broadcast_to(index, shape) for index in indices]
    numbers: list[int] = [*inner, *shape, *other.strides[: len(shape)]]
    for axis, index in enumerate(wide):
        numbers += [array.shape[axis], array.strides[axis], *index.strides]
    kinds = tuple(index.dtype for index in wide)
    text = _source(name, array.dtype, len(shape), kinds)
    work = other.size * 4
    return kernel_of(text, tuple(numbers), work, [array, other, *wide])


def _run(array: Array, other: Array, rank: int) -> Sequence[int] | None:
    """Return the elements after the last index, and their strides in both arrays.

    None if they are not one loop.
    """
    if not rank:
        return 1, 0, 0
    parts = []
    for each in (array, other):
        pairs = [
            (stride, extent)
            for stride, extent in zip(
                each.strides[-rank:], each.shape[-rank:], strict=True
            )
            if extent != 1
        ]
        steps = zip(pairs, pairs[1:], strict=False)
        if any(a != b * extent for (a, _), (b, extent) in steps):
            return None
        parts.append(pairs[-1][0] if pairs else 0)
    return int(np.prod(array.shape[-rank:])), *parts


@cache
def _source(
    name: str, dtype: np.dtype[Any], rank: int, kinds: tuple[np.dtype[Any], ...]
) -> str:
    to = FunctionWriter()
    array, other = to.word("ptr"), to.word("ptr")
    starts = [to.word("ptr") for _ in kinds]
    count, inner, outer = to.words(3)
    shape, steps = to.words(rank), to.words(rank)
    extents = [(to.word(), to.word(), to.words(rank)) for _ in kinds]

    with to.nested(shape) as loops:
        offset, failed = "0", "false"
        for kind, start, (extent, stride, own) in zip(
            kinds, starts, extents, strict=True
        ):
            index = to.load(kind, to.at(start, *zip(loops, own, strict=True)))
            if kind != INT64:
                index = to.do(f"sext {stored(kind)} {index} to i64")
            index, is_outside = wrapped(to, index, extent)
            failed = to.do(f"or i1 {failed}, {is_outside}")
            part = to.do(f"mul nsw i64 {index}, {stride}")
            offset = to.do(f"add nsw i64 {offset}, {part}")
        to.fail_if(failed)
        first = to.do(f"getelementptr i8, ptr {array}, i64 {offset}")
        second = to.at(other, *zip(loops, steps, strict=True))
        with to.counting("0", count) as number:
            mine = to.at(first, (number, inner))
            theirs = to.at(second, (number, outer))
            _combine(to, name, dtype, mine, theirs)
    return to.text()


def wrapped(to: FunctionWriter, index: str, extent: str) -> tuple[str, str]:
    """Return an index counted from the start, 0 if it is outside, and whether it is."""
    is_negative = to.do(f"icmp slt i64 {index}, 0")
    other = to.do(f"add i64 {index}, {extent}")
    index = to.do(f"select i1 {is_negative}, i64 {other}, i64 {index}")
    is_outside = to.do(f"icmp uge i64 {index}, {extent}")
    return to.do(f"select i1 {is_outside}, i64 0, i64 {index}"), is_outside


def _combine(
    to: FunctionWriter, name: str, dtype: np.dtype[Any], mine: str, theirs: str
) -> None:
    if name == "read":
        to.store(dtype, to.load(dtype, mine), theirs)
        return
    value = to.load(dtype, theirs)
    if name != "copy":
        value = write(name, to, dtype, (to.load(dtype, mine), value))
    to.store(dtype, value, mine)
