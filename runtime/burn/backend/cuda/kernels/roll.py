"""Cyclic shifts along any axes in one kernel."""

from functools import cache
from math import gcd, prod
from typing import Any

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.elementwise.elements import dense
from burn.ops.padding import roll as roll_op
from burn.ops.support import Array, Axes, axes_of, integers

_THREADS = 256
#: The most elements: positions are 32-bit integers.
_MOST = 2**31 - _THREADS
#: Unsigned types by their bytes.
_PACKS = {
    16: "uint4",
    8: "uint2",
    4: "unsigned int",
    2: "unsigned short",
    1: "unsigned char",
}


@roll_op.on(Cuda)
def roll(x: Array, shifts: Any, axes: Axes) -> Array:
    """:func:`burn.ops.roll`; NumPy's algorithm copies each part of the result."""
    import cupy

    steps, along = integers(shifts), axes_of(axes, x.ndim)
    if len(steps) != len(along) or not 0 < x.size <= _MOST or x.itemsize not in _PACKS:
        return roll_op.kernel(x, shifts, axes)
    x = dense(x)
    by_axis = dict(zip(along, steps, strict=True))
    extents, moved = merged_axes(x.shape, [by_axis.get(i, 0) for i in range(x.ndim)])
    size = gcd(16, extents[-1] * x.itemsize, x.data.ptr)
    out = cupy.empty_like(x)
    extents = (*extents[:-1], extents[-1] * x.itemsize // size)
    count = prod(extents)
    kernel = _kernel(roll_source(size, extents, moved))
    kernel((-(-count // _THREADS),), (_THREADS,), (x, out, np.int32(count)))
    return out


def merged_axes(
    shape: tuple[int, ...], shifts: list[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return extents and shifts after neighboring axes without a shift are joined.

    Shifts are reduced modulo the extent. The last axis of the result has no shift; it
    has one element where the last axis of ``shape`` is shifted.
    """
    extents, steps = [1], [0]
    for extent, shift in zip(reversed(shape), reversed(shifts), strict=True):
        if shift % extent == 0 and steps[-1] == 0:
            extents[-1] *= extent
        else:
            extents.append(extent)
            steps.append(shift % extent)
    return tuple(reversed(extents)), tuple(reversed(steps))


def roll_source(size: int, extents: tuple[int, ...], shifts: tuple[int, ...]) -> str:
    """CUDA C of a kernel that moves packs of ``size`` bytes.

    ``extents`` and ``shifts`` are those of :func:`merged_axes`, the last extent in
    packs.
    """
    moves, step = "", 1
    for extent, shift in zip(reversed(extents), reversed(shifts), strict=True):
        source = f"(at + {extent - shift}) % {extent}" if shift else f"at % {extent}"
        moves += f"    from += {source} * {step}, at /= {extent};\n"
        step *= extent
    return f"""
extern "C" __global__ void roll(
    const {_PACKS[size]}* x, {_PACKS[size]}* y, int count
) {{
    const int i = blockIdx.x * {_THREADS} + threadIdx.x;
    if (i >= count) return;
    int at = i, from = 0;
{moves}    y[i] = x[from];
}}
"""


@cache
def _kernel(source: str) -> Any:
    import cupy

    return cupy.RawKernel(source, "roll")
