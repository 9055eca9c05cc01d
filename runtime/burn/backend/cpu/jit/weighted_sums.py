"""Weighted sums of elements at computed indices as machine code."""

from functools import cache
from typing import Any

import numpy as np

from burn.backend.cpu.jit.functions import FLOATS
from burn.backend.cpu.jit.native import INT64, FunctionWriter, kernel_of
from burn.backend.cpu.jit.source import Kernel
from burn.ops.support import Array


def gather_sum_kernel(
    x: Array, index: Array, weight: Array | None, target: Array
) -> Kernel | None:
    """Return the kernel of ``gather_sum``, None if it is NumPy's."""
    arrays = [x, index, target] + ([] if weight is None else [weight])
    floats = [each for each in arrays if each is not index]
    if any(each.dtype != x.dtype for each in floats) or x.dtype not in FLOATS:
        return None
    if index.dtype != INT64 or any(
        not each.size or not each.flags.aligned for each in arrays
    ):
        return None
    shape = (x.shape[0], x.shape[1], index.shape[2], index.shape[1], x.shape[2])
    numbers = [*shape, *(stride for each in arrays for stride in each.strides)]
    text = _source(x.dtype, weight is not None)
    return kernel_of(text, tuple(numbers), index.size * x.shape[1] * 4, arrays)


@cache
def _source(dtype: np.dtype[Any], is_weighted: bool) -> str:
    to = FunctionWriter()
    names = ("x", "index", "target", "weight")[: 4 if is_weighted else 3]
    starts = {name: to.word("ptr") for name in names}
    batch, channels, places, taps, size = to.words(5)
    strides = {name: to.words(3) for name in names}
    kind = "float" if dtype.itemsize == 4 else "double"
    sum_ = to.cell(dtype)

    def at(name: str, *indices: str) -> str:
        return to.at(starts[name], *zip(indices, strides[name], strict=True))

    with (
        to.counting("0", batch) as n,
        to.counting("0", channels) as c,
        to.counting("0", places) as p,
    ):
        to.set(sum_, dtype, "0.0")
        with to.counting("0", taps) as k:
            index = to.load(INT64, at("index", n, k, p))
            to.fail_if(to.do(f"icmp sge i64 {index}, {size}"))
            is_inside = to.do(f"icmp ult i64 {index}, {size}")
            index = to.do(f"select i1 {is_inside}, i64 {index}, i64 0")
            value = to.load(dtype, at("x", n, c, index))
            value = to.do(f"select i1 {is_inside}, {kind} {value}, {kind} 0.0")
            if is_weighted:
                factor = to.load(dtype, at("weight", n, k, p))
                value = to.do(f"fmul {kind} {value}, {factor}")
            total = to.do(f"fadd {kind} {to.get(sum_, dtype)}, {value}")
            to.set(sum_, dtype, total)
        to.store(dtype, to.get(sum_, dtype), at("target", n, c, p))
    return to.text()
