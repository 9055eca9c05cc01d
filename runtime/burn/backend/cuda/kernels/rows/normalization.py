"""Softmax and normalization of rows: one kernel a call, one pass over memory.

A row is in the registers of a warp, or of a block if it is long. The source is CUDA C,
compiled by NVRTC once for each length of rows, element type and process; CuPy keeps the
binaries on disk.
"""

from functools import cache
from math import prod
from typing import Any

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.elementwise.elements import dense
from burn.backend.cuda.kernels.rows.forms import (
    features_of,
    form_of_arrays,
    launch,
    rows_of,
    types,
)
from burn.ops.attention import masked_softmax as masked_softmax_op
from burn.ops.layer_norm import (
    layer_norm as layer_norm_op,
    rms_norm as rms_norm_op,
)
from burn.ops.softmax import softmax as softmax_op
from burn.ops.support import Array, Axes, axes_of

_SOURCE = r"""
extern "C" __global__ void __launch_bounds__(BLOCK) softmax_rows(
    const Pack* x, Pack* y, long long rows, bool empty_is_zero
) {
    ROW_OF_THREAD
    A v[PACKS][SIZE], largest = __int_as_float(0xff800000), total = 0;
    load(x + row * COUNT, v, largest);
    #pragma unroll
    for (int p = 0; p < PACKS; p++)
        #pragma unroll
        for (int k = 0; k < SIZE; k++) largest = join(v[p][k], largest, false);
    largest = over_row(largest, false);
    if (isinf(largest) && largest < 0) largest = 0;
    #pragma unroll
    EACH {
        #pragma unroll
        for (int k = 0; k < SIZE; k++) {
            v[p][k] = exp(v[p][k] - largest);
            if (IS_IN) total += v[p][k];
        }
    }
    total = over_row(total, true);
    if (empty_is_zero && total == 0) total = 1;
    #pragma unroll
    EACH if (IS_IN && own < rows) {
        Pack out;
        #pragma unroll
        for (int k = 0; k < SIZE; k++) out.at[k] = (T)(v[p][k] / total);
        y[row * COUNT + i] = out;
    }
}
extern "C" __global__ void __launch_bounds__(BLOCK) normalize_rows(
    const Pack* x, const Pack* weight, const Pack* bias, Pack* y, long long rows,
    A epsilon, bool is_centered
) {
    ROW_OF_THREAD
    A v[PACKS][SIZE], mean = 0, power = 0;
    load(x + row * COUNT, v, 0);
    if (is_centered) {
        #pragma unroll
        for (int p = 0; p < PACKS; p++)
            #pragma unroll
            for (int k = 0; k < SIZE; k++) mean += v[p][k];
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
    EACH if (IS_IN && own < rows) {
        Pack out, factor, shift;
        if (weight) factor = weight[i];
        if (bias) shift = bias[i];
        #pragma unroll
        for (int k = 0; k < SIZE; k++) {
            A value = (v[p][k] - mean) * inverse;
            if (weight) value *= (A)factor.at[k];
            if (bias) value += (A)shift.at[k];
            out.at[k] = (T)value;
        }
        y[row * COUNT + i] = out;
    }
}
"""
# The same for rows that are too long for registers: each block reads its row again.
_LONG = r"""
__device__ A join(A x, A y, bool is_sum) {
    return is_sum ? x + y : (x > y ? x : y);
}
// The sum or the maximum of `x` over the threads of a block, in all of them.
__device__ A over_block(A x, bool is_sum) {
    __shared__ A parts[32];
    for (int step = 16; step; step >>= 1)
        x = join(x, __shfl_xor_sync(0xffffffffu, x, step), is_sum);
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[0];
    for (int i = 1; i < blockDim.x / 32; i++) x = join(x, parts[i], is_sum);
    return x;
}
extern "C" __global__ void softmax_rows(
    const T* x, T* y, long long columns, bool empty_is_zero
) {
    const T* row = x + blockIdx.x * columns;
    T* out = y + blockIdx.x * columns;
    A largest = __int_as_float(0xff800000);
    for (long long i = threadIdx.x; i < columns; i += blockDim.x)
        largest = join(largest, (A)row[i], false);
    largest = over_block(largest, false);
    if (isinf(largest) && largest < 0) largest = 0;
    A total = 0;
    for (long long i = threadIdx.x; i < columns; i += blockDim.x)
        total += exp((A)row[i] - largest);
    total = over_block(total, true);
    if (empty_is_zero && total == 0) total = 1;
    for (long long i = threadIdx.x; i < columns; i += blockDim.x)
        out[i] = (T)(exp((A)row[i] - largest) / total);
}
extern "C" __global__ void normalize_rows(
    const T* x, const T* weight, const T* bias, T* y, long long columns, A epsilon,
    bool is_centered
) {
    const T* row = x + blockIdx.x * columns;
    T* out = y + blockIdx.x * columns;
    A mean = 0, power = 0;
    if (is_centered) {
        for (long long i = threadIdx.x; i < columns; i += blockDim.x)
            mean += (A)row[i];
        mean = over_block(mean, true) / columns;
    }
    for (long long i = threadIdx.x; i < columns; i += blockDim.x) {
        A d = (A)row[i] - mean;
        power += d * d;
    }
    A inverse = 1 / sqrt(over_block(power, true) / columns + epsilon);
    for (long long i = threadIdx.x; i < columns; i += blockDim.x) {
        A value = ((A)row[i] - mean) * inverse;
        if (weight) value *= (A)weight[i];
        if (bias) value += (A)bias[i];
        out[i] = (T)value;
    }
}
"""


@cache
def _long_kernel(name: str, dtype: Any) -> Any:
    """Return the compiled kernel ``name`` for rows of any length."""
    import cupy

    return cupy.RawKernel(types(dtype) + _LONG, name)


def _launch(
    name: str, x: Array, columns: int, arrays: tuple[Any, ...], *rest: Any
) -> None:
    """Launch ``name`` on the rows of ``x`` and further optional arrays."""
    form = form_of_arrays(x, columns, arrays)
    if form is not None:
        launch(name, _SOURCE, form, x, columns, arrays, *rest)
        return
    threads = min(1024, max(32, -(-columns // 32) * 32))
    parameters = [np.uint64(0) if array is None else array for array in arrays]
    arguments = (x, *parameters, np.int64(columns), *rest)
    _long_kernel(name, x.dtype)((x.size // columns,), (threads,), arguments)


@softmax_op.on(Cuda)
def softmax(x: Array, *, axis: Axes = -1) -> Array:
    """Compute :func:`burn.ops.softmax` over the last axis in one kernel."""
    if x.ndim and axes_of(axis, x.ndim) == (x.ndim - 1,):
        out = _softmax(x, empty_is_zero=False)
        if out is not None:
            return out
    return softmax_op.kernel(x, axis=axis)


@masked_softmax_op.on(Cuda)
def masked_softmax(x: Array) -> Array:
    """Compute :func:`burn.ops.attention.masked_softmax` in one kernel."""
    out = _softmax(x, empty_is_zero=True) if x.ndim else None
    return masked_softmax_op.kernel(x) if out is None else out


def _softmax(x: Array, empty_is_zero: bool) -> Array | None:
    rows = rows_of(x, max(x.shape[-1], 1))
    if rows is None:
        return None
    import cupy

    out = cupy.empty_like(rows)
    columns = x.shape[-1]
    _launch("softmax_rows", rows, columns, (out,), np.bool_(empty_is_zero))
    return out


@layer_norm_op.on(Cuda)
def layer_norm(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    axis: Axes = -1,
    epsilon: float = 1e-5,
) -> Array:
    """Compute :func:`burn.ops.layer_norm` over the last axes in one kernel."""
    out = _normalize(x, weight, bias, axis, epsilon, is_centered=True)
    if out is None:
        return layer_norm_op.kernel(x, weight, bias, axis=axis, epsilon=epsilon)
    return out


@rms_norm_op.on(Cuda)
def rms_norm(
    x: Array, weight: Array | None = None, *, axis: Axes = -1, epsilon: float = 1e-5
) -> Array:
    """Compute :func:`burn.ops.rms_norm` over the last axes in one kernel."""
    out = _normalize(x, weight, None, axis, epsilon, is_centered=False)
    return (
        rms_norm_op.kernel(x, weight, axis=axis, epsilon=epsilon)
        if out is None
        else out
    )


def _normalize(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    axis: Axes,
    epsilon: float,
    is_centered: bool,
) -> Array | None:
    """Return the norm, or None if the generic kernel must compute it."""
    features = features_of(x, axis, weight, bias)
    columns = 0 if features is None else prod(features)
    rows = rows_of(x, columns) if columns else None
    if rows is None:
        return None
    import cupy

    out = cupy.empty_like(rows)
    parameters = [None if array is None else dense(array) for array in (weight, bias)]
    wide = np.float64 if x.dtype == np.float64 else np.float32
    _launch(
        *("normalize_rows", rows, columns, (*parameters, out)),
        *(wide(epsilon), np.bool_(is_centered)),
    )
    return out
