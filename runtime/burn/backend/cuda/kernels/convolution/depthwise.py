"""Depthwise convolutions of channels-last images.

cuDNN has no fusion for them, and is slow for kernels larger than 3 x 3. A thread
computes a pack of channels of several columns, which share loads.
"""

from functools import cache
from math import prod
from typing import Any

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.convolution.convolution import (
    Geometry,
    Layout,
    are_convolved,
    conv,
)
from burn.backend.cuda.kernels.convolution.patches import are_patches, convolved
from burn.backend.cuda.kernels.elementwise.epilogues import (
    TYPES,
    has_residual,
    header,
    statements,
)
from burn.backend.cuda.libraries import packed
from burn.ops.conv import conv as conv_op
from burn.ops.fused import After
from burn.ops.support import Array
from burn.ops.window import windows

_LAYOUT = Layout(channels_last=True)
_SOURCE = """
#define SPAN ((EACH - 1) * STEP_W + (WIDE - 1) * GAP_W + 1)
extern "C" __global__ void __launch_bounds__(128) depthwise(
    const Pack* x, const Pack* weight, const T* bias, const Pack* residual, Pack* y,
    int height, int width, int packs, int rows, int columns, long long count
) {
    const long long i = blockIdx.x * 128LL + threadIdx.x;
    if (i >= count) return;
    const int groups = (columns + EACH - 1) / EACH;
    const int c = i % packs, column = i / packs % groups * EACH;
    const int row = i / packs / groups % rows;
    const long long image = i / packs / groups / rows;
    W sum[EACH][SIZE];
    #pragma unroll
    for (int k = 0; k < SIZE; k++) {
        const W start = bias ? (W)bias[c * SIZE + k] : W(0);
        #pragma unroll
        for (int e = 0; e < EACH; e++) sum[e][k] = start;
    }
    const int left = column * STEP_W - PAD_W;
    #pragma unroll UNROLL
    for (int p = 0; p < TALL; p++) {
        const int h = row * STEP_H + p * GAP_H - PAD_H;
        const bool is_row = h >= 0 && h < height;  // no branch: loads do not wait
        const Pack* line = x + ((image * height + h) * width + left) * packs + c;
        Pack part[SPAN];
        #pragma unroll
        for (int s = 0; s < SPAN; s++) {
            if (is_row && left + s >= 0 && left + s < width) part[s] = line[s * packs];
            else {
                #pragma unroll
                for (int k = 0; k < SIZE; k++) part[s].at[k] = (T)0.0f;
            }
        }
        #pragma unroll
        for (int q = 0; q < WIDE; q++) {
            const Pack factor = weight[(p * WIDE + q) * packs + c];
            #pragma unroll
            for (int e = 0; e < EACH; e++) {
                #pragma unroll
                for (int k = 0; k < SIZE; k++)
                    sum[e][k] += (W)part[e * STEP_W + q * GAP_W].at[k]
                        * (W)factor.at[k];
            }
        }
    }
    const long long first = ((image * rows + row) * columns + column) * packs + c;
    #pragma unroll
    for (int e = 0; e < EACH; e++) {
        if (column + e >= columns) break;
        Pack out, more;
        if (HAS_RESIDUAL) more = residual[first + e * packs];
        #pragma unroll
        for (int k = 0; k < SIZE; k++) {
            W v = sum[e][k];
            const W r = HAS_RESIDUAL ? (W)more.at[k] : W(0);
            EPILOGUE
            out.at[k] = (T)v;
        }
        y[first + e * packs] = out;
    }
}
"""
#: The number of threads that fill a device; below it threads have fewer columns.
_FULL = 1 << 16
#: The most registers of weights of a thread that loads them all at once.
_UNROLLED = 64


@conv_op.on(Cuda)
def conv_or_depthwise(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Array:
    """Compute :func:`burn.ops.conv`, with special kernels for depthwise and patches."""
    steps: Any = {"stride": stride, "padding": padding, "dilation": dilation}
    if x.ndim == 4 and are_convolved(x, weight, bias):
        channels, outputs = x.shape[1], weight.shape[0]
        wins = windows(x.shape[2:], weight.shape[2:], stride, padding, dilation)
        geometry = Geometry.of(x.shape[0], channels, outputs, groups, wins)
        out = None
        if geometry is None or not prod(geometry.result):
            return conv(x, weight, bias, groups=groups, **steps)
        if groups == 1 and weight.shape[1] == channels and are_patches(geometry):
            out = convolved(x, weight, bias, geometry)
        elif 1 < groups == channels == outputs and weight.shape[1] == 1:
            operands = (x, weight, bias, None)
            out = depthwise(operands, geometry, geometry.result, ())
        if out is not None:
            return out
    return conv(x, weight, bias, groups=groups, **steps)


def depthwise(
    operands: tuple[Any, ...], geometry: Geometry, shape: tuple[int, ...], after: After
) -> Array | None:
    """Return the convolution of image, weight, bias and residual; None if unsupported.

    The image and the weight have as many channels as there are groups.
    """
    x, weight, bias, residual = operands
    if x.dtype not in TYPES or len(geometry.stride) != 2 or not prod(shape):
        return None
    channels, height, width = geometry.image[1:]
    widest = TYPES[x.dtype][1]
    if channels % widest or weight.dtype != x.dtype:
        return None
    others: list[Any] = [np.uint64(0), np.uint64(0)]
    if bias is not None:
        others[0] = contiguous(bias)
    if has_residual(after):
        if residual is None or residual.dtype != x.dtype or residual.shape != shape:
            return None
        others[1] = _LAYOUT.of(residual)
    out = _LAYOUT.empty(shape, x.dtype)
    batch, _, rows, columns = geometry.result
    size = pack_size(widest, batch * rows * columns * channels)
    each = columns_of(batch * rows * columns * channels // size, geometry)
    count = batch * rows * -(-columns // each) * channels // size
    steps = (geometry.stride, geometry.dilation, geometry.padding)
    kernel = _compiled(x.dtype, size, each, geometry.weight[2:], steps, after)
    kernel(
        (-(-count // 128),),
        (128,),
        (
            *(_LAYOUT.of(x), packed(weight, "depthwise", _taps_first), *others, out),
            *map(np.int32, (height, width, channels // size, rows, columns)),
            np.int64(count),
        ),
    )
    return out


def pack_size(widest: int, count: int) -> int:
    """Return how many channels a thread has, for ``count`` elements of the result.

    Packs are as wide as memory allows unless threads are too few to fill a device.
    """
    size = widest
    while size > 1 and count < size * _FULL:
        size //= 2
    return size


def columns_of(threads: int, geometry: Geometry) -> int:
    """Return the number of columns per thread."""
    each = 4
    while each > 1 and (threads < each * _FULL or geometry.stride[1] * each > 4):
        each //= 2
    return each


def contiguous(array: Array) -> Array:
    """Return ``array`` without gaps between its elements, in C order."""
    import cupy

    return cupy.ascontiguousarray(array)


def _taps_first(weight: Array) -> Array:
    """Return ``weight`` [channels, 1, *taps] as [*taps, channels]."""
    return contiguous(weight.reshape(weight.shape[0], -1).T)


@cache
def _compiled(
    dtype: Any, size: int, each: int, taps: tuple[int, ...], steps: Any, after: After
) -> Any:
    import cupy

    return cupy.RawKernel(source(dtype, size, each, taps, steps, after), "depthwise")


def source(
    dtype: Any, size: int, each: int, taps: tuple[int, ...], steps: Any, after: After
) -> str:
    """Return CUDA C of the kernel; ``steps`` are strides, dilations and padding."""
    (step_h, step_w), (gap_h, gap_w), (pad_h, pad_w) = steps
    numbers = {
        "TALL": taps[0],
        "WIDE": taps[1],
        "STEP_H": step_h,
        "STEP_W": step_w,
        "GAP_H": gap_h,
        "GAP_W": gap_w,
        "PAD_H": pad_h,
        "PAD_W": pad_w,
        "EACH": each,
        "HAS_RESIDUAL": int(has_residual(after)),
    }
    defines = "".join(f"#define {name} {value}\n" for name, value in numbers.items())
    registers = taps[0] * taps[1] * size * dtype.itemsize // 4
    unrolled = taps[0] if registers <= _UNROLLED else 1
    constant = f"constexpr int UNROLL = {unrolled};\n"
    code = _SOURCE.replace("EPILOGUE", statements(after))
    return defines + header(dtype, size) + constant + code
