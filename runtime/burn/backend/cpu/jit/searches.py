"""Extremes, nonzero and distinct elements as machine code."""

from functools import cache
from typing import Any

import numpy as np

from burn.backend.cpu.jit.functions import FLOATS, TYPES, is_known
from burn.backend.cpu.jit.native import INT32, INT64, FunctionWriter, kernel_of, stored
from burn.backend.cpu.jit.source import Kernel
from burn.ops.support import Array


def nonzero_kernel(x: Array, target: Array) -> Kernel | None:
    """Return the kernel of ``np.nonzero`` as an array [rank, count]; None for NumPy's.

    It fails if there are more or fewer than in ``target``.
    """
    x = x if x.ndim else x.reshape(1)
    if not is_known(x.dtype) or not x.size or not x.flags.aligned:
        return None
    if not target.flags.c_contiguous or target.dtype != INT64 or not target.size:
        return None
    numbers = (target.shape[1], *x.shape, *x.strides)
    text = _nonzero_source(x.dtype, x.ndim)
    return kernel_of(text, numbers, x.size * 4, [x, target])


@cache
def _nonzero_source(dtype: np.dtype[Any], rank: int) -> str:
    to = FunctionWriter()
    x, target, most = to.word("ptr"), to.word("ptr"), to.word()
    shape, strides = to.words(rank), to.words(rank)
    total = to.cell(INT64)
    to.set(total, INT64, "0")
    limit = to.do(f"sub i64 {most}, 1")

    with to.nested(shape) as loops:
        value = to.load(dtype, to.at(x, *zip(loops, strides, strict=True)))
        compare, zero = ("fcmp une", "0.0") if dtype in FLOATS else ("icmp ne", "0")
        is_nonzero = to.do(f"{compare} {stored(dtype)} {value}, {zero}")
        before = to.get(total, INT64)
        # Always written, and overwritten by the next element if this one is zero.
        position = to.do(f"call i64 @llvm.umin.i64(i64 {before}, i64 {limit})")
        is_full = to.do(f"icmp uge i64 {before}, {most}")
        for axis, loop in enumerate(loops):
            row = to.do(f"mul i64 {most}, {axis}")
            pointer = to.at(target, (to.do(f"add i64 {row}, {position}"), "8"))
            previous = to.load(INT64, pointer)
            value = to.do(f"select i1 {is_full}, i64 {previous}, i64 {loop}")
            to.store(INT64, value, pointer)
        step = to.do(f"zext i1 {is_nonzero} to i64")
        to.set(total, INT64, to.do(f"add i64 {before}, {step}"))
    count = to.get(total, INT64)
    to.fail_if(to.do(f"icmp ne i64 {count}, {most}"))
    return to.text()


def extreme_kernel(name: str, x: Array, axis: int, target: Array) -> Kernel | None:
    """Return the kernel of ``argmax`` or ``argmin`` along an axis; None for NumPy's."""
    axis %= max(x.ndim, 1)
    if x.dtype not in (*FLOATS, INT32, INT64) or not x.size or x.ndim > 6:
        return None
    others = x.shape[:axis] + x.shape[axis + 1 :]
    if (
        target.dtype != INT64
        or not x.flags.aligned
        or target.size * x.shape[axis] != (x.size)
    ):
        return None
    moved = np.moveaxis(x, axis, -1)
    if target.ndim == x.ndim:
        target = np.moveaxis(target, axis, -1)[..., 0]
    if target.shape != others:
        return None
    numbers = (*moved.shape, *moved.strides, *target.strides)
    text = _extreme_source(name, x.dtype, len(others))
    return kernel_of(text, numbers, x.size * 3, [moved, target])


@cache
def _extreme_source(name: str, dtype: np.dtype[Any], rank: int) -> str:
    to = FunctionWriter()
    x, target = to.word("ptr"), to.word("ptr")
    shape, strides, steps = to.words(rank + 1), to.words(rank + 1), to.words(rank)
    best, where = to.cell(dtype), to.cell(INT64)
    kind = TYPES[dtype]
    relation = "gt" if name == "argmax" else "lt"

    with to.nested(shape[:-1]) as loops:
        row = to.at(x, *zip(loops, strides[:-1], strict=True))
        to.set(best, dtype, to.load(dtype, row))
        to.set(where, INT64, "0")
        with to.counting("0", shape[-1]) as index:
            value = to.load(dtype, to.at(row, (index, strides[-1])))
            most = to.get(best, dtype)
            if dtype in FLOATS:  # the first NaN is the result
                is_better = to.do(f"fcmp u{relation} {kind} {value}, {most}")
                is_number = to.do(f"fcmp ord {kind} {most}, {most}")
                is_better = to.do(f"and i1 {is_better}, {is_number}")
            else:
                is_better = to.do(f"icmp s{relation} {kind} {value}, {most}")
            chosen = f"select i1 {is_better}, {kind} {value}, {kind} {most}"
            to.set(best, dtype, to.do(chosen))
            before = to.get(where, INT64)
            chosen = f"select i1 {is_better}, i64 {index}, i64 {before}"
            to.set(where, INT64, to.do(chosen))
        pointer = to.at(target, *zip(loops, steps, strict=True))
        to.store(INT64, to.get(where, INT64), pointer)
    return to.text()
