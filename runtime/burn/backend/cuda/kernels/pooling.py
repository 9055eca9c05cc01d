"""Pooling and means of channels-last images.

A thread computes a pack of channels: 16 bytes if the number of channels allows it.
"""

from functools import cache
from math import prod
from typing import Any

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.elementwise.elementwise import memory_order
from burn.backend.cuda.kernels.elementwise.epilogues import TYPES, header
from burn.ops.pool import avg_pool as avg_pool_op, max_pool as max_pool_op
from burn.ops.reduction import mean as mean_op
from burn.ops.support import Array, Axes, axes_of
from burn.ops.window import Extents, Padding, Windows, windows

_POOL = """
extern "C" __global__ void __launch_bounds__(128) pool(
    const Pack* x, Pack* y, int height, int width, int packs, int rows, int columns,
    long long count
) {
    const long long i = blockIdx.x * 128LL + threadIdx.x;
    if (i >= count) return;
    const int c = i % packs, column = i / packs % columns;
    const int row = i / packs / columns % rows;
    const Pack* image = x + i / packs / columns / rows * height * width * packs + c;
    W v[SIZE];
    #pragma unroll
    for (int k = 0; k < SIZE; k++) v[k] = IS_MEAN ? W(0) : __int_as_float(0xff800000);
    int tall = 0, wide = 0;
    #pragma unroll
    for (int p = 0; p < TALL; p++) {
        const int h = row * STEP_H + p * GAP_H - PAD_H;
        tall += h >= -LOW_H && h < height + HIGH_H;
        if (h < 0 || h >= height) continue;
        #pragma unroll
        for (int q = 0; q < WIDE; q++) {
            const int w = column * STEP_W + q * GAP_W - PAD_W;
            if (w < 0 || w >= width) continue;
            const Pack part = image[((long long)h * width + w) * packs];
            #pragma unroll
            for (int k = 0; k < SIZE; k++) {
                const W u = (W)part.at[k];
                if (IS_MEAN) v[k] += u;
                else v[k] = u > v[k] || u != u ? u : v[k];
            }
        }
    }
    #pragma unroll
    for (int q = 0; q < WIDE; q++) {
        const int w = column * STEP_W + q * GAP_W - PAD_W;
        wide += w >= -LOW_W && w < width + HIGH_W;
    }
    Pack out;
    #pragma unroll
    for (int k = 0; k < SIZE; k++)
        out.at[k] = (T)(IS_MEAN ? v[k] / (tall * wide) : v[k]);
    y[i] = out;
}
"""
_MEAN = """
struct __align__(SIZE * sizeof(O)) Result { O at[SIZE]; };
// x [outer, count, packs]: each block adds `length` of `count` for LANES packs.
extern "C" __global__ void __launch_bounds__(256) mean(
    const Pack* x, Result* y, int count, int packs, int length, W factor
) {
    __shared__ W parts[256 * SIZE];
    const int lane = threadIdx.x % LANES, step = threadIdx.x / LANES;
    const int pack = blockIdx.x * LANES + lane;
    const int first = blockIdx.z * length, end = min(first + length, count);
    W sum[SIZE];
    #pragma unroll
    for (int k = 0; k < SIZE; k++) sum[k] = 0;
    if (pack < packs) {
        const Pack* from = x + (long long)blockIdx.y * count * packs + pack;
        #pragma unroll 4
        for (int i = first + step; i < end; i += 256 / LANES) {
            const Pack part = from[(long long)i * packs];
            #pragma unroll
            for (int k = 0; k < SIZE; k++) sum[k] += (W)part.at[k];
        }
    }
    #pragma unroll
    for (int k = 0; k < SIZE; k++) parts[k * 256 + threadIdx.x] = sum[k];
    for (int half = 128; half >= LANES; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            #pragma unroll
            for (int k = 0; k < SIZE; k++)
                parts[k * 256 + threadIdx.x] += parts[k * 256 + threadIdx.x + half];
        }
    }
    if (threadIdx.x >= LANES || pack >= packs) return;
    Result out;
    #pragma unroll
    for (int k = 0; k < SIZE; k++)
        out.at[k] = (O)(parts[k * 256 + threadIdx.x] * factor);
    y[((long long)blockIdx.y * gridDim.z + blockIdx.z) * packs + pack] = out;
}
"""
#: The number of elements that a thread adds sequentially, and the number of partial
#: sums that are added at the end.
_EACH, _PARTS = 16, 256


@max_pool_op.on(Cuda)
def max_pool(
    x: Array,
    *,
    kernel_size: Extents,
    stride: Extents = 1,
    padding: Padding = 0,
    dilation: Extents = 1,
    ceil_mode: bool = False,
) -> Array:
    """Compute :func:`burn.ops.max_pool` of images in one kernel."""
    steps: Any = {"stride": stride, "padding": padding, "dilation": dilation}
    steps |= {"ceil_mode": ceil_mode}
    out = _pool(x, windows(x.shape[2:], kernel_size, **steps), None)
    if out is None:
        return max_pool_op.kernel(x, kernel_size=kernel_size, **steps)
    return out


@avg_pool_op.on(Cuda)
def avg_pool(
    x: Array,
    *,
    kernel_size: Extents,
    stride: Extents = 1,
    padding: Padding = 0,
    dilation: Extents = 1,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Array:
    """Compute :func:`burn.ops.avg_pool` of images in one kernel."""
    steps: Any = {"stride": stride, "padding": padding, "dilation": dilation}
    steps |= {"ceil_mode": ceil_mode}
    out = _pool(x, windows(x.shape[2:], kernel_size, **steps), count_include_pad)
    if out is None:
        steps |= {"kernel_size": kernel_size}
        return avg_pool_op.kernel(x, count_include_pad=count_include_pad, **steps)
    return out


def _pool(x: Array, wins: Windows, pad_counts: bool | None) -> Array | None:
    """Return means, or maxima if ``pad_counts`` is None; None if unsupported."""
    if x.dtype not in TYPES or x.ndim != 4 or not is_channels_last(x):
        return None
    if min(min(pads) for pads in wins.pads) < 0 or not prod(wins.count):
        return None
    import cupy

    batch, channels, height, width = x.shape
    rows, columns = wins.count
    size = pack_size(channels, x)
    out = cupy.empty((batch, rows, columns, channels), x.dtype)
    count = out.size // size
    outside = wins.pads if pad_counts else ((0, 0), (0, 0))
    steps = (wins.kernel, wins.stride, wins.dilation, wins.pads, outside)
    kernel = _pool_kernel(x.dtype, size, steps, pad_counts is not None)
    numbers = map(np.int32, (height, width, channels // size, rows, columns))
    kernel((-(-count // 128),), (128,), (x, out, *numbers, np.int64(count)))
    result: Array = out.transpose(0, 3, 1, 2)
    return result


@cache
def _pool_kernel(dtype: Any, size: int, steps: Any, is_mean: bool) -> Any:
    import cupy

    taps, stride, gaps, pads, outside = steps
    numbers: dict[str, int] = {"TALL": taps[0], "WIDE": taps[1], "IS_MEAN": is_mean}
    for axis, name in enumerate("HW"):
        numbers[f"STEP_{name}"], numbers[f"GAP_{name}"] = stride[axis], gaps[axis]
        numbers[f"PAD_{name}"] = pads[axis][0]
        numbers[f"LOW_{name}"], numbers[f"HIGH_{name}"] = outside[axis]
    defines = "".join(f"#define {name} {int(n)}\n" for name, n in numbers.items())
    return cupy.RawKernel(defines + header(dtype, size) + _POOL, "pool")


def is_channels_last(x: Array) -> bool:
    """Return whether images [N, C, H, W] are dense and channels-last."""
    batch, channels, height, width = x.shape
    steps = (height * width * channels, 1, width * channels, channels)
    return bool(x.size) and all(
        extent == 1 or stride == step * x.itemsize
        for extent, stride, step in zip(x.shape, x.strides, steps, strict=True)
    )


def pack_size(channels: int, *arrays: Array) -> int:
    """Return how many of ``channels`` to read at once, by the arrays' alignment."""
    size: int = TYPES[arrays[0].dtype][1]
    while size > 1 and (
        channels % size or any(a.data.ptr % (size * a.itemsize) for a in arrays)
    ):
        size //= 2
    return size


@mean_op.on(Cuda)
def mean(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Compute :func:`burn.ops.mean` over axes that are not innermost, in one kernel."""
    axes = axes_of(axis, x.ndim)
    form = _reduced_extents(x, axes) if x.dtype in TYPES and x.size else None
    if form is None:
        return mean_op.kernel(x, axis, keepdims=keepdims)
    import cupy

    order, (outer, count, inner) = form
    others = [a for a in order if a not in axes]
    out = cupy.empty([x.shape[a] for a in others], x.dtype)
    _mean_of(x, out, outer, count, inner)
    out = out.transpose(np.argsort(others).tolist())
    if keepdims:
        out = out.reshape([1 if a in axes else n for a, n in enumerate(x.shape)])
    return out


def _reduced_extents(
    x: Array, axes: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, int, int]] | None:
    """Return the axes in memory order; the extents before, in and after ``axes``."""
    order: Any = range(x.ndim)
    if not x.flags.c_contiguous:
        order = memory_order(x.shape, x.strides, x.itemsize)
    if order is None or not axes:
        return None
    places = [n for n, axis in enumerate(order) if axis in axes and x.shape[axis] > 1]
    if not places or places != list(range(places[0], places[-1] + 1)):
        return None
    extents = [x.shape[axis] for axis in order]
    parts = (extents[: places[0]], extents[places[0] : places[-1] + 1])
    inner = prod(extents[places[-1] + 1 :])
    outer, count = map(prod, parts)
    if inner < 8 or outer > 65_535:
        return None
    return tuple(order), (outer, count, inner)


def _mean_of(x: Array, out: Array, outer: int, count: int, inner: int) -> None:
    """Write the means of ``x`` [outer, count, inner] to ``out`` [outer, inner]."""
    import cupy

    size = pack_size(inner, x)
    packs = inner // size
    lanes = min(32, 1 << (packs - 1).bit_length())
    length = max(256 // lanes * _EACH, -(-count // _PARTS))
    parts = -(-count // length)
    blocks = -(-packs // lanes)
    target = out if parts == 1 else cupy.empty((outer, parts, inner), np.float32)
    factor = np.float32(1 / count if parts == 1 else 1)
    _mean_kernel(x.dtype, target.dtype, size, lanes)(
        (blocks, outer, parts),
        (256,),
        (x, target, *map(np.int32, (count, packs, length)), factor),
    )
    if parts == 1:
        return
    size = min(4, size)
    packs = inner // size
    lanes = min(32, 1 << (packs - 1).bit_length())
    blocks = -(-packs // lanes)
    _mean_kernel(target.dtype, out.dtype, size, lanes)(
        (blocks, outer, 1),
        (256,),
        (target, out, *map(np.int32, (parts, packs, parts)), np.float32(1 / count)),
    )


@cache
def _mean_kernel(dtype: Any, result: Any, size: int, lanes: int) -> Any:
    import cupy

    return cupy.RawKernel(mean_source(dtype, result, size, lanes), "mean")


def mean_source(dtype: Any, result: Any, size: int, lanes: int) -> str:
    """Return CUDA C of the kernel that sums ``dtype`` and writes ``result``."""
    include = "#include <cuda_fp16.h>\n" if np.float16 in (dtype, result) else ""
    names = f"#define LANES {lanes}\ntypedef {TYPES[result][0]} O;\n"
    return include + header(dtype, size) + names + _MEAN
