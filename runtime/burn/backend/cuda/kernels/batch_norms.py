"""Batch norm in training, and its gradient, for float32 images.

Images are channels-last. Sums over all pixels of a channel take two kernels: blocks
reduce their rows, and one warp for each channel sums these in float64.
"""

from functools import cache
from typing import Any

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.convolution.layouts import Layout
from burn.ops.norm import (
    batch_norm_grad as batch_norm_grad_op,
    batch_norm_train as batch_norm_train_op,
)
from burn.ops.support import Array

_LAST = Layout(channels_last=True)
#: Channels and rows of a block, and about how many blocks there are.
_ACROSS, _DOWN, _BLOCKS = 32, 8, 1056
_MOST = 2**31 - 1
_SOURCE = r"""
// parts[k][y][c]: the sums of block y over its rows.
extern "C" __global__ void __launch_bounds__(256) row_sums(
    const float* x, const float* g, const float* mean, float* parts,
    int rows, int channels, int kind
) {
    __shared__ float shared[2][8][33];
    const int c = blockIdx.x * 32 + threadIdx.x;
    float a = 0, b = 0;
    if (c < channels) {
        const float m = kind ? mean[c] : 0;
        const int step = gridDim.y * 8;
        #pragma unroll 4
        for (int r = blockIdx.y * 8 + threadIdx.y; r < rows; r += step) {
            const long long i = (long long)r * channels + c;
            const float v = x[i] - m;
            if (kind == 0) a += v;
            else if (kind == 1) a += v * v;
            else { a += g[i]; b += g[i] * v; }
        }
    }
    shared[0][threadIdx.y][threadIdx.x] = a;
    shared[1][threadIdx.y][threadIdx.x] = b;
    __syncthreads();
    if (threadIdx.y || c >= channels) return;
    for (int i = 1; i < 8; i++) {
        a += shared[0][i][threadIdx.x];
        b += shared[1][i][threadIdx.x];
    }
    parts[(long long)blockIdx.y * channels + c] = a;
    if (kind == 2) parts[(long long)(gridDim.y + blockIdx.y) * channels + c] = b;
}
extern "C" __global__ void __launch_bounds__(256) add_parts(
    const float* parts, float* out, int blocks, int channels, double scale
) {
    const int c = blockIdx.x * 8 + threadIdx.y;
    if (c >= channels) return;
    parts += (long long)blockIdx.y * blocks * channels;
    double sum = 0;
    for (int i = threadIdx.x; i < blocks; i += 32)
        sum += parts[(long long)i * channels + c];
    for (int step = 16; step; step >>= 1)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x == 0) out[blockIdx.y * channels + c] = (float)(sum * scale);
}
extern "C" __global__ void __launch_bounds__(256) normalize(
    const float* x, const float* mean, const float* var, const float* weight,
    const float* bias, float* y, int count, int channels, float epsilon
) {
    for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) {
        const int c = i % channels;
        const float scale = rsqrtf(var[c] + epsilon) * (weight ? weight[c] : 1.0f);
        y[i] = (x[i] - mean[c]) * scale + (bias ? bias[c] : 0.0f);
    }
}
extern "C" __global__ void __launch_bounds__(256) of_x(
    const float* g, const float* x, const float* mean, const float* var,
    const float* weight, const float* means, float* y, int count, int channels,
    float epsilon
) {
    for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) {
        const int c = i % channels;
        const float inverse = rsqrtf(var[c] + epsilon);
        const float slope = means[channels + c] * inverse * inverse;
        const float share = g[i] - means[c] - (x[i] - mean[c]) * slope;
        y[i] = share * inverse * (weight ? weight[c] : 1.0f);
    }
}
"""


@batch_norm_train_op.on(Cuda)
def batch_norm_train(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    epsilon: float = 1e-5,
) -> tuple[Array, Array, Array]:
    """Compute :func:`burn.ops.batch_norm_train` in five kernels."""
    if not _is_supported(x, weight, bias):
        parts: tuple[Array, Array, Array]
        parts = batch_norm_train_op.kernel(x, weight, bias, epsilon=epsilon)
        return parts
    import cupy

    x, rows, channels = _LAST.of(x), x.size // x.shape[1], x.shape[1]
    mean = _sums(x, None, None, 0, 1.0 / rows)[0]
    var = _sums(x, None, mean, 1, 1.0 / rows)[0]
    out = cupy.empty_like(x, order="K")
    operands = (x, mean, var, _or_none(weight), _or_none(bias), out)
    sizes = (np.int32(x.size), np.int32(channels), np.float32(epsilon))
    _kernel("normalize")((_blocks(x.size),), (256,), (*operands, *sizes))
    return out, mean, var


@batch_norm_grad_op.on(Cuda)
def batch_norm_grad(
    grad: Array,
    x: Array,
    mean: Array,
    var: Array,
    weight: Array | None = None,
    *,
    epsilon: float = 1e-5,
) -> tuple[Array, Array, Array]:
    """Compute :func:`burn.ops.batch_norm_grad` in three kernels."""
    same = grad.dtype == x.dtype and _is_supported(x, mean, var)
    if not same or not _is_supported(x, weight, None):
        parts: tuple[Array, Array, Array]
        parts = batch_norm_grad_op.kernel(grad, x, mean, var, weight, epsilon=epsilon)
        return parts
    import cupy

    rows, channels = x.size // x.shape[1], x.shape[1]
    x, grad = _LAST.of(x), _LAST.of(grad)
    mean, var = _or_none(mean), _or_none(var)
    means = _sums(x, grad, mean, 2, 1.0 / rows)
    out = cupy.empty_like(x, order="K")
    operands = (grad, x, mean, var, _or_none(weight), means, out)
    sizes = (np.int32(x.size), np.int32(channels), np.float32(epsilon))
    _kernel("of_x")((_blocks(x.size),), (256,), (*operands, *sizes))
    inverse = 1.0 / cupy.sqrt(var + np.float32(epsilon))
    return out, means[1] * inverse * np.float32(rows), means[0] * np.float32(rows)


def _is_supported(x: Array, *others: Array | None) -> bool:
    """Return whether ``x`` has channels, and all operands are float32."""
    if x.dtype != np.float32 or x.ndim < 2 or not 0 < x.size <= _MOST:
        return False
    return all(other is None or other.dtype == x.dtype for other in others)


def _or_none(array: Array | None) -> Any:
    """Return the kernel argument: a dense array, or a null pointer."""
    import cupy

    return np.uintp(0) if array is None else cupy.ascontiguousarray(array)


def _sums(x: Array, grad: Any, mean: Any, kind: int, scale: float) -> Array:
    """Return sums over the rows of a matrix [rows, channels], times ``scale``.

    They are [1, channels] of ``x`` (0) or of its squares from ``mean`` (1), or
    [2, channels] of ``grad`` and its products with ``x - mean`` (2).
    """
    import cupy

    rows, channels = x.size // x.shape[1], x.shape[1]
    across, outputs = -(-channels // _ACROSS), 2 if kind == 2 else 1
    down = max(1, min(-(-rows // (4 * _DOWN)), _BLOCKS // across))
    parts = cupy.empty((outputs, down, channels), np.float32)
    null = np.uintp(0)
    _kernel("row_sums")(
        (across, down),
        (_ACROSS, _DOWN),
        (
            *(x, null if grad is None else grad, null if mean is None else mean),
            *(parts, np.int32(rows), np.int32(channels), np.int32(kind)),
        ),
    )
    out = cupy.empty((outputs, channels), np.float32)
    numbers = (np.int32(down), np.int32(channels), np.float64(scale))
    grid = (-(-channels // 8), outputs)
    _kernel("add_parts")(grid, (32, 8), (parts, out, *numbers))
    return out


def _blocks(count: int) -> int:
    return min(-(-count // 256), 1 << 16)


@cache
def _kernel(name: str) -> Any:
    import cupy

    return cupy.RawKernel(_SOURCE, name)
