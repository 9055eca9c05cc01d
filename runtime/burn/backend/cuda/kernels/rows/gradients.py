"""Gradients of softmax and of norms over rows: one kernel for those of operands.

Sums over rows, which are the gradients of scales, take two more (`column_sums.py`).
"""

from math import prod

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.column_sums import Vectors, column_sums
from burn.backend.cuda.kernels.elementwise.elements import dense
from burn.backend.cuda.kernels.rows.forms import (
    features_of,
    form_of_arrays,
    launch,
    rows_of,
)
from burn.ops.layer_norm import (
    layer_norm_grad as layer_norm_grad_op,
    rms_norm_grad as rms_norm_grad_op,
)
from burn.ops.softmax import softmax_grad as softmax_grad_op
from burn.ops.support import Array, Axes, axes_of

_TYPES = (np.float16, np.float32)
_SOURCE = r"""
#define NUMBERS \
    for (int p = 0; p < PACKS; p++) \
        _Pragma("unroll") \
        for (int k = 0; k < SIZE; k++)
extern "C" __global__ void __launch_bounds__(BLOCK) softmax_grad_rows(
    const Pack* grad, const Pack* out, Pack* y, long long rows
) {
    ROW_OF_THREAD
    A g[PACKS][SIZE], v[PACKS][SIZE], total = 0;
    load(grad + row * COUNT, g, 0);
    load(out + row * COUNT, v, 0);
    #pragma unroll
    NUMBERS total += g[p][k] * v[p][k];
    total = over_row(total, true);
    #pragma unroll
    EACH if (IS_IN && own < rows) {
        Pack part;
        #pragma unroll
        for (int k = 0; k < SIZE; k++) part.at[k] = (T)((g[p][k] - total) * v[p][k]);
        y[row * COUNT + i] = part;
    }
}
extern "C" __global__ void __launch_bounds__(BLOCK) norm_grad_rows(
    const Pack* grad, const Pack* x, const Pack* weight, Pack* y, float* means,
    float* inverses, long long rows, A epsilon, bool is_centered
) {
    ROW_OF_THREAD
    A g[PACKS][SIZE], v[PACKS][SIZE], mean = 0, power = 0, shift = 0, slope = 0;
    load(x + row * COUNT, v, 0);
    load(grad + row * COUNT, g, 0);
    if (is_centered) {
        #pragma unroll
        NUMBERS mean += v[p][k];
        mean = over_row(mean, true) / (COUNT * SIZE);
    }
    #pragma unroll
    EACH if (IS_IN) {
        #pragma unroll
        for (int k = 0; k < SIZE; k++) {
            const A d = v[p][k] - mean;
            power += d * d;
        }
    }
    const A inverse = 1 / sqrt(over_row(power, true) / (COUNT * SIZE) + epsilon);
    #pragma unroll
    EACH if (IS_IN) {
        Pack factor;
        if (weight) factor = weight[i];
        #pragma unroll
        for (int k = 0; k < SIZE; k++) {
            if (weight) g[p][k] *= (A)factor.at[k];
            v[p][k] = (v[p][k] - mean) * inverse;
            shift += g[p][k];
            slope += g[p][k] * v[p][k];
        }
    }
    slope = over_row(slope, true) / (COUNT * SIZE);
    shift = is_centered ? over_row(shift, true) / (COUNT * SIZE) : A(0);
    #pragma unroll
    EACH if (IS_IN && own < rows) {
        Pack part;
        #pragma unroll
        for (int k = 0; k < SIZE; k++)
            part.at[k] = (T)((g[p][k] - v[p][k] * slope - shift) * inverse);
        y[row * COUNT + i] = part;
    }
    if (threadIdx.x % THREADS == 0 && own < rows) {
        means[row] = mean;
        inverses[row] = inverse;
    }
}
"""


@softmax_grad_op.on(Cuda)
def softmax_grad(grad: Array, out: Array, *, axis: Axes = -1) -> Array:
    """Compute :func:`burn.ops.softmax_grad` over the last axis in one kernel."""
    is_last = out.ndim and axes_of(axis, out.ndim) == (out.ndim - 1,)
    rows = rows_of(out, max(out.shape[-1], 1)) if is_last else None
    if rows is None or grad.dtype != out.dtype or grad.shape != out.shape:
        return softmax_grad_op.kernel(grad, out, axis=axis)
    import cupy

    arrays = (rows, cupy.empty_like(rows))
    grad = dense(grad)
    form = form_of_arrays(grad, out.shape[-1], arrays)
    if form is None:
        return softmax_grad_op.kernel(grad, out, axis=axis)
    launch("softmax_grad_rows", _SOURCE, form, grad, out.shape[-1], arrays)
    return arrays[1]


@layer_norm_grad_op.on(Cuda)
def layer_norm_grad(
    grad: Array,
    x: Array,
    weight: Array | None = None,
    *,
    axis: Axes = -1,
    epsilon: float = 1e-5,
) -> tuple[Array, ...]:
    """Compute :func:`burn.ops.layer_norm_grad` over the last axes in three kernels."""
    parts = _norm_grad(grad, x, weight, axis, epsilon, is_centered=True)
    if parts is None:
        parts = layer_norm_grad_op.kernel(grad, x, weight, axis=axis, epsilon=epsilon)
    return parts


@rms_norm_grad_op.on(Cuda)
def rms_norm_grad(
    grad: Array,
    x: Array,
    weight: Array | None = None,
    *,
    axis: Axes = -1,
    epsilon: float = 1e-5,
) -> tuple[Array, ...]:
    """Compute :func:`burn.ops.rms_norm_grad` over the last axes in three kernels."""
    parts = _norm_grad(grad, x, weight, axis, epsilon, is_centered=False)
    if parts is None:
        parts = rms_norm_grad_op.kernel(grad, x, weight, axis=axis, epsilon=epsilon)
    return parts


def _norm_grad(
    grad: Array,
    x: Array,
    weight: Array | None,
    axis: Axes,
    epsilon: float,
    is_centered: bool,
) -> tuple[Array, ...] | None:
    """Return the gradients of a norm, or None if the generic kernel computes them."""
    features = features_of(x, axis, weight)
    is_supported = grad.shape == x.shape and grad.dtype == x.dtype in _TYPES
    columns = 0 if features is None or not is_supported else prod(features)
    rows = rows_of(x, columns) if columns else None
    if features is None or rows is None:
        return None
    import cupy

    grad, scale = dense(grad), None if weight is None else dense(weight)
    out, count = cupy.empty_like(rows), x.size // columns
    form = form_of_arrays(grad, columns, (rows, scale, out))
    if form is None:
        return None
    means, inverses = cupy.empty((2, count), np.float32)
    arrays = (rows, scale, out, means, inverses)
    rest = (np.float32(epsilon), np.bool_(is_centered))
    launch("norm_grad_rows", _SOURCE, form, grad, columns, arrays, *rest)
    if weight is None:
        return (out,)
    vectors = Vectors(means, inverses)
    sums = column_sums("row products", rows, columns, grad, vectors, dtype=x.dtype)
    return out, sums[1].reshape(features)
