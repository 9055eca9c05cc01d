"""Gradients of max pooling of channels-last images: one kernel per direction.

A thread computes one element. If windows overlap, a thread of :func:`window_scatter`
sums its gradients in the order of the taps, like the generic kernel.
"""

from functools import cache
from math import prod
from typing import Any

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.convolution.layouts import Layout
from burn.backend.cuda.kernels.elementwise.epilogues import TYPES, header
from burn.backend.cuda.kernels.pooling import is_channels_last
from burn.ops.pool import (
    window_argmax as window_argmax_op,
    window_scatter as window_scatter_op,
)
from burn.ops.support import Array
from burn.ops.window import Extents, Windows, windows

_LAST = Layout(channels_last=True)
#: Indices are 32-bit numbers.
_MOST = 2**31 - 1
_ARGMAX = """
extern "C" __global__ void __launch_bounds__(256) argmax(
    const T* x, const T* y, unsigned char* choice, int height, int width, int channels,
    int rows, int columns, int count
) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const int c = i % channels, column = i / channels % columns;
    const int row = i / channels / columns % rows;
    const T* image = x + i / channels / columns / rows * height * width * channels + c;
    const W largest = (W)y[i];
    int first = 0;
    #pragma unroll
    for (int p = TALL - 1; p >= 0; p--) {
        const int h = row * STEP_H + p * GAP_H - PAD_H;
        #pragma unroll
        for (int q = WIDE - 1; q >= 0; q--) {
            const int w = column * STEP_W + q * GAP_W - PAD_W;
            // Padding is minus infinity.
            W v = __int_as_float(0xff800000);
            if (h >= 0 && h < height && w >= 0 && w < width)
                v = (W)image[(h * width + w) * channels];
            first = v == largest ? p * WIDE + q : first;
        }
    }
    choice[i] = first;
}
"""
_SCATTER = """
extern "C" __global__ void __launch_bounds__(256) scatter(
    const T* grad, const unsigned char* choice, T* out, int height, int width,
    int channels, int rows, int columns, int count
) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= count) return;
    const int c = i % channels, w = i / channels % width;
    const int h = i / channels / width % height;
    const int image = i / channels / width / height * rows * columns;
    W sum = 0;
    #pragma unroll
    for (int p = 0; p < TALL; p++) {
        const int down = h + PAD_H - p * GAP_H, row = down / STEP_H;
        if (down < 0 || down % STEP_H || row >= rows) continue;
        #pragma unroll
        for (int q = 0; q < WIDE; q++) {
            const int along = w + PAD_W - q * GAP_W, column = along / STEP_W;
            if (along < 0 || along % STEP_W || column >= columns) continue;
            const int at = (image + row * columns + column) * channels + c;
            if (choice[at] == p * WIDE + q) sum += (W)grad[at];
        }
    }
    out[i] = (T)sum;
}
"""


@window_argmax_op.on(Cuda)
def window_argmax(
    x: Array, out: Array, *, kernel_size: Extents, **static: Any
) -> Array:
    """Compute :func:`burn.ops.window_argmax` of images in one kernel."""
    wins = windows(x.shape[2:], kernel_size, **static).trimmed
    if x.dtype != out.dtype or not _is_supported(x, wins) or not is_channels_last(x):
        choice: Array
        choice = window_argmax_op.kernel(x, out, kernel_size=kernel_size, **static)
        return choice
    import cupy

    batch, channels, height, width = x.shape
    choice = cupy.empty((batch, *wins.count, channels), np.uint8)
    sizes = (height, width, channels, *wins.count, choice.size)
    _run("argmax", x.dtype, wins, (x, _LAST.of(out), choice), sizes)
    return choice.transpose(0, 3, 1, 2)


@window_scatter_op.on(Cuda)
def window_scatter(
    grad: Array,
    choice: Array,
    *,
    size: tuple[int, ...],
    kernel_size: Extents,
    **static: Any,
) -> Array:
    """Compute :func:`burn.ops.window_scatter` of images in one kernel."""
    wins = windows(size, kernel_size, **static).trimmed
    bytes_ = choice.dtype == np.uint8 and choice.shape == grad.shape
    if not bytes_ or not _is_supported(grad, wins) or not prod(size):
        steps: Any = {"size": size, "kernel_size": kernel_size, **static}
        result: Array = window_scatter_op.kernel(grad, choice, **steps)
        return result
    import cupy

    batch, channels = grad.shape[:2]
    out = cupy.empty((batch, *size, channels), grad.dtype)
    sizes = (*size, channels, *wins.count, out.size)
    operands = (_LAST.of(grad), _LAST.of(choice), out)
    _run("scatter", grad.dtype, wins, operands, sizes)
    return out.transpose(0, 3, 1, 2)


def _is_supported(x: Array, wins: Windows) -> bool:
    """Return whether these are images with windows of at most 256 taps."""
    most = max(x.size, x.shape[0] * x.shape[1] * prod(wins.size) if x.ndim == 4 else 0)
    is_image = x.ndim == 4 and x.dtype in TYPES and 0 < most <= _MOST
    pads = min((min(pair) for pair in wins.pads), default=0)
    return is_image and wins.taps <= 256 and pads >= 0 and prod(wins.count) > 0


def _run(
    name: str, dtype: Any, wins: Windows, operands: Any, sizes: tuple[int, ...]
) -> None:
    """Launch a kernel with a thread for each element; the last size is their number."""
    steps = (wins.kernel, wins.stride, wins.dilation, tuple(p for p, _ in wins.pads))
    blocks = -(-sizes[-1] // 256)
    _kernel(name, dtype, steps)((blocks,), (256,), (*operands, *map(np.int32, sizes)))


@cache
def _kernel(name: str, dtype: Any, steps: Any) -> Any:
    import cupy

    (tall, wide), *others = steps
    defines = f"#define TALL {tall}\n#define WIDE {wide}\n" + "".join(
        f"#define {kind}_{axis} {number}\n"
        for kind, numbers in zip(("STEP", "GAP", "PAD"), others, strict=True)
        for axis, number in zip("HW", numbers, strict=True)
    )
    source = _ARGMAX if name == "argmax" else _SCATTER
    return cupy.RawKernel(defines + header(dtype, 1) + source, name)
