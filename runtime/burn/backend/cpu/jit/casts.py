"""Conversions of floats to integers, and of bytes, as machine code."""

from functools import cache
from typing import Any

import numpy as np

from burn.backend.cpu.jit.functions import FLOATS, TYPES
from burn.backend.cpu.jit.native import INT32, INT64, FunctionWriter, kernel_of
from burn.backend.cpu.jit.source import Kernel
from burn.ops.support import Array

_MOST_AXES = 6
_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))


def cast_kernel(target: Array, x: Any) -> Kernel | None:
    """Return the kernel of a copy that no loop supports, None if it is NumPy's."""
    if isinstance(x, np.ndarray) and x.dtype in _BYTES:
        return _byte_kernel(target, x)
    return truncation_kernel(target, x)


def _byte_kernel(target: Array, x: Array) -> Kernel | None:
    """Return the kernel that copies one byte to an int32."""
    if target.dtype != INT32 or target.size != 1 or x.size != 1:
        return None
    return kernel_of(_byte_source(x.dtype == np.int8), (), 1, (x, target))


@cache
def _byte_source(is_signed: bool) -> str:
    to = FunctionWriter()
    x, target = to.word("ptr"), to.word("ptr")
    byte = to.do(f"load i8, ptr {x}")
    number = to.do(f"{'sext' if is_signed else 'zext'} i8 {byte} to i32")
    to.store(INT32, number, target)
    return to.text()


def truncation_kernel(target: Array, x: Array) -> Kernel | None:
    """Return the kernel that copies floats to integers, None if it is NumPy's.

    It fails for numbers that the integers cannot represent.
    """
    if not isinstance(x, np.ndarray) or x.dtype not in FLOATS:
        return None
    if target.dtype not in (INT32, INT64) or not target.size:
        return None
    x = np.broadcast_to(x, target.shape)
    arrays = (x, target)
    if target.ndim > _MOST_AXES or not all(a.flags.aligned for a in arrays):
        return None
    numbers = (*target.shape, *x.strides, *target.strides)
    text = _source(x.dtype, target.dtype, target.ndim)
    return kernel_of(text, numbers, target.size * 3, arrays)


@cache
def _source(given: np.dtype[Any], wanted: np.dtype[Any], rank: int) -> str:
    to = FunctionWriter()
    x, target = to.word("ptr"), to.word("ptr")
    shape, strides, steps = (to.words(rank) for _ in range(3))
    kind, bits = TYPES[given], 8 * wanted.itemsize - 1
    # Powers of two, which LLVM reads as the bits of a double.
    most = f"0x{int(np.float64(2.0**bits).view(np.int64)):016X}"
    least = f"0x{int(np.float64(-(2.0**bits)).view(np.uint64)):016X}"

    with to.nested(shape) as loops:
        value = to.load(given, to.at(x, *zip(loops, strides, strict=True)))
        is_low = to.do(f"fcmp oge {kind} {value}, {least}")
        is_high = to.do(f"fcmp olt {kind} {value}, {most}")
        is_inside = to.do(f"and i1 {is_low}, {is_high}")
        to.fail_if(to.do(f"xor i1 {is_inside}, true"))
        value = to.do(f"select i1 {is_inside}, {kind} {value}, {kind} 0.0")
        number = to.do(f"fptosi {kind} {value} to {TYPES[wanted]}")
        to.store(wanted, number, to.at(target, *zip(loops, steps, strict=True)))
    return to.text()
