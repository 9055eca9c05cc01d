"""Softmax and normalization of rows: one kernel a call, one pass over memory.

A row is in the registers of a warp, or of a block if it is long. The source is CUDA C,
compiled by NVRTC once for each length of rows, element type and process; CuPy keeps the
binaries on disk.
"""

from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.elementwise.elements import dense
from burn.ops.attention import masked_softmax as masked_softmax_op
from burn.ops.layer_norm import (
    feature_axes,
    layer_norm as layer_norm_op,
    rms_norm as rms_norm_op,
)
from burn.ops.softmax import softmax as softmax_op
from burn.ops.support import Array, Axes, axes_of

#: The names in CUDA C of element types, and of the types of their sums.
_TYPES = {
    np.dtype(np.float16): ("__half", "float"),
    np.dtype(np.float32): ("float", "float"),
    np.dtype(np.float64): ("double", "double"),
}
_SOURCE = r"""
struct __align__(SIZE * sizeof(T)) Pack { T at[SIZE]; };
__device__ A join(A x, A y, bool is_sum) {
    return is_sum ? x + y : (x != x || x > y ? x : y);
}
// The sum or the maximum of `x` over the threads of a row, in all of them.
__device__ A over_row(A x, bool is_sum) {
    #pragma unroll
    for (int step = (THREADS < 32 ? THREADS : 32) / 2; step; step >>= 1)
        x = join(x, __shfl_xor_sync(0xffffffffu, x, step), is_sum);
    if (THREADS <= 32) return x;
    __shared__ A parts[32];
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[0];
    for (int i = 1; i < THREADS / 32; i++) x = join(x, parts[i], is_sum);
    return x;
}
// The numbers of a row that a thread has: PACKS times SIZE next to each other.
#define EACH for (int p = 0, i = threadIdx.x % THREADS; p < PACKS; p++, i += THREADS)
#define IS_IN (PACKS * THREADS == COUNT || i < COUNT)
__device__ void load(const Pack* from, A (&to)[PACKS][SIZE], A other) {
    Pack parts[PACKS];
    #pragma unroll
    EACH if (IS_IN) parts[p] = from[i];
    #pragma unroll
    EACH {
        #pragma unroll
        for (int k = 0; k < SIZE; k++) to[p][k] = IS_IN ? (A)parts[p].at[k] : other;
    }
}
// Threads after the last row compute the last one, since the rest of their warp waits
// for them, and write nothing.
#define ROW_OF_THREAD \
    const long long own = blockIdx.x * (long long)(BLOCK / THREADS) \
        + threadIdx.x / THREADS, row = own < rows ? own : rows - 1;
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
#: Rows of one launch: the largest grid that CUDA has.
_MOST_ROWS = 2**31 - 1
#: The most elements of a thread, and the number of rows that fill a device.
MOST, _MANY = 32, 1024


@cache
def _long_kernel(name: str, dtype: Any) -> Any:
    """Return the compiled kernel ``name`` for rows of any length."""
    import cupy

    return cupy.RawKernel(_types(dtype) + _LONG, name)


def _types(dtype: Any) -> str:
    element, wide = _TYPES[dtype]
    header = "#include <cuda_fp16.h>\n" if dtype == np.float16 else ""
    return f"{header}typedef {element} T;\ntypedef {wide} A;\n"


class Form(NamedTuple):
    """The iteration of a kernel over rows of ``packs`` packs of ``size`` elements."""

    size: int
    packs: int
    threads: int
    block: int

    def source(self, dtype: Any) -> str:
        """Return CUDA C of the kernels for rows of this form."""
        numbers = {
            "SIZE": self.size,
            "COUNT": self.packs,
            "THREADS": self.threads,
            "PACKS": -(-self.packs // self.threads),
            "BLOCK": self.block,
        }
        defines = "".join(f"#define {name} {n}\n" for name, n in numbers.items())
        return defines + _types(dtype) + _SOURCE


def form_of(columns: int, rows: int, itemsize: int, alignment: int) -> Form | None:
    """Return the form of rows, None if they are too long for registers.

    ``alignment`` is that of all addresses, in bytes.
    """
    size = 16 // itemsize
    while size > 1 and (columns % size or alignment % (size * itemsize)):
        size //= 2
    count = columns // size
    threads = _lanes(count) if rows >= _MANY and count * size <= MOST * 32 else 32
    # Few rows: more threads for each, so that loads wait for each other less.
    most = MOST if rows >= _MANY else MOST // 2
    while threads < 1024 and -(-count // threads) * size > most:
        threads *= 2
    if -(-count // threads) * size > MOST:
        return None
    block = 128 if threads <= 32 and rows >= _MANY else threads
    return Form(size, count, threads, block)


def _lanes(count: int) -> int:
    """Return how many threads of a warp share a row of ``count`` packs.

    The largest power of two of which none idles, otherwise the first one that suffices.
    """
    if count > 1 and count % 2 == 0:
        return min(32, count & -count)
    return min(32, 1 << (count - 1).bit_length())


@cache
def _kernel(name: str, dtype: Any, form: Form) -> Any:
    """Return the compiled kernel ``name`` for rows of ``form``."""
    import cupy

    return cupy.RawKernel(form.source(dtype), name)


def _launch(
    name: str, x: Array, columns: int, arrays: tuple[Any, ...], *rest: Any
) -> None:
    """Launch ``name`` on the rows of ``x`` and further optional arrays."""
    rows = x.size // columns
    alignment = 16
    for array in (x, *arrays):
        address = 0 if array is None else int(array.data.ptr)
        alignment = min(alignment, address & -address or 16)
    parameters = [np.uint64(0) if array is None else array for array in arrays]
    form = form_of(columns, rows, x.itemsize, alignment)
    if form is None:
        threads = min(1024, max(32, -(-columns // 32) * 32))
        arguments = (x, *parameters, np.int64(columns), *rest)
        _long_kernel(name, x.dtype)((rows,), (threads,), arguments)
        return
    blocks = -(-rows // (form.block // form.threads))
    arguments = (x, *parameters, np.int64(rows), *rest)
    _kernel(name, x.dtype, form)((blocks,), (form.block,), arguments)


def _rows(x: Array, columns: int) -> Array | None:
    """Return ``x`` row-major if these kernels support it, else None."""
    if x.dtype not in _TYPES or not x.size or x.size // columns > _MOST_ROWS:
        return None
    return dense(x)


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
    rows = _rows(x, max(x.shape[-1], 1))
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
    axes = feature_axes(axis, x.ndim)
    if axes != tuple(range(x.ndim - len(axes), x.ndim)):
        return None
    features = x.shape[x.ndim - len(axes) :]
    for array in (weight, bias):
        if array is not None and (array.shape != features or array.dtype != x.dtype):
            return None
    columns = prod(features)
    rows = _rows(x, columns) if columns else None
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
