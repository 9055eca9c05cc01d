"""A check of magnitudes as machine code."""

from functools import cache
from typing import Any

import numpy as np

from burn.backend.cpu.jit.functions import FLOATS
from burn.backend.cpu.jit.native import FunctionWriter, kernel_of
from burn.backend.cpu.jit.source import Kernel
from burn.ops.support import Array

_MOST_AXES = 6
#: Integers of the size of a float: those of magnitudes are in the order of magnitudes,
#: and those of NaN are above that of infinity.
_BITS = {np.dtype(np.float32): np.int32, np.dtype(np.float64): np.int64}


def limit_kernel(array: Array, limit: float) -> Kernel | None:
    """Return a kernel that fails if a magnitude is above ``limit``, or one is NaN.

    None if it does not support the array. It may fail at the limit itself.
    """
    if array.dtype not in FLOATS or not array.size:
        return None
    if not array.flags.aligned or array.ndim > _MOST_AXES:
        return None
    # Rounded down, since a bound of results may follow from it.
    most = np.nextafter(array.dtype.type(limit), array.dtype.type(0))
    most = most if np.isfinite(limit) else array.dtype.type(limit)
    bits = int(most.view(_BITS[array.dtype]))
    loops = _loops(array)
    numbers = (bits, *(extent for extent, _ in loops), *(stride for _, stride in loops))
    text = _source(array.dtype, len(loops), loops[-1][1] == array.itemsize)
    return kernel_of(text, numbers, array.size, [array])


def _loops(array: Array) -> list[tuple[int, int]]:
    """Return the extents and strides of loops over all elements in memory order."""
    pairs = sorted(zip(array.strides, array.shape, strict=True), key=_stride)
    loops: list[tuple[int, int]] = []
    for stride, extent in pairs:
        if loops and loops[-1][1] == stride * extent:
            extent *= loops.pop()[0]
        if extent != 1 or not loops:
            loops.append((extent, stride))
    return loops or [(1, array.itemsize)]


def _stride(pair: tuple[int, int]) -> int:
    return -abs(pair[0])


@cache
def _source(dtype: np.dtype[Any], rank: int, is_dense: bool) -> str:
    to = FunctionWriter()
    whole: np.dtype[Any] = np.dtype(_BITS[dtype])
    bits_, kind = 8 * dtype.itemsize, f"i{8 * dtype.itemsize}"
    start, limit = to.word("ptr"), to.word(kind)
    shape, strides = to.words(rank), to.words(rank)
    if is_dense:  # known, so that loads are vectors
        strides[-1] = str(dtype.itemsize)
    most = to.cell(whole)
    to.set(most, whole, "0")

    with to.nested(shape) as loops:
        bits = to.load(whole, to.at(start, *zip(loops, strides, strict=True)))
        size = to.do(f"and {kind} {bits}, {2 ** (bits_ - 1) - 1}")
        before = to.get(most, whole)
        name = f"@llvm.smax.{kind}"
        largest = to.do(f"call {kind} {name}({kind} {before}, {kind} {size})")
        to.set(most, whole, largest)
    largest = to.get(most, whole)
    to.fail_if(to.do(f"icmp sgt {kind} {largest}, {limit}"))
    return to.text()
