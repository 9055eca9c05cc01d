"""The argmax of each row, with several blocks per row."""

from functools import cache
from math import prod
from typing import Any

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.elementwise.epilogues import TYPES
from burn.backend.cuda.libraries import counters
from burn.ops.ordering import argmax as argmax_op
from burn.ops.support import Array

#: The most blocks of a row, and how many vectors there are for each thread at least.
_THREADS, _PARTS, _EACH = 256, 128, 2
_SOURCE = r"""
#include <cuda_fp16.h>
struct __align__(SIZE * sizeof(T)) Pack { T at[SIZE]; };
// NaN is larger than every number; of equal elements the first one counts.
__device__ bool is_before(float x, long long i, float y, long long j) {
    if (x != x) return y == y || i < j;
    return x > y || (x == y && i < j);
}
__device__ void over_block(float& best, long long& place, float* values,
    long long* places) {
    #pragma unroll
    for (int round = 0; round < 2; round++) {
        #pragma unroll
        for (int step = 16; step; step >>= 1) {
            const float v = __shfl_xor_sync(0xffffffffu, best, step);
            const long long i = __shfl_xor_sync(0xffffffffu, place, step);
            if (is_before(v, i, best, place)) best = v, place = i;
        }
        if (round) break;
        if (threadIdx.x % 32 == 0)
            values[threadIdx.x / 32] = best, places[threadIdx.x / 32] = place;
        __syncthreads();
        best = values[threadIdx.x % 8], place = places[threadIdx.x % 8];
    }
}
extern "C" __global__ void __launch_bounds__(256) argmax(
    const Pack* x, long long* out, float* best_of, long long* place_of,
    unsigned int* counters, long long packs
) {
    __shared__ float values[8];
    __shared__ long long places[8];
    __shared__ bool is_last;
    const int parts = gridDim.x;
    x += blockIdx.y * packs;
    float best = __int_as_float(0xff800000);
    long long place = 1LL << 62;
    #pragma unroll 4
    for (long long i = blockIdx.x * 256 + threadIdx.x; i < packs; i += parts * 256) {
        const Pack p = x[i];
        #pragma unroll
        for (int k = 0; k < SIZE; k++) {
            const float v = (float)p.at[k];
            if (is_before(v, i * SIZE + k, best, place)) best = v, place = i * SIZE + k;
        }
    }
    over_block(best, place, values, places);
    best_of += blockIdx.y * parts, place_of += blockIdx.y * parts;
    if (threadIdx.x == 0) {
        best_of[blockIdx.x] = best, place_of[blockIdx.x] = place;
        __threadfence();
        is_last = atomicAdd(counters + blockIdx.y, 1u) == (unsigned int)parts - 1;
    }
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    best = __int_as_float(0xff800000), place = 1LL << 62;
    if (threadIdx.x < parts)
        best = __ldcg(best_of + threadIdx.x), place = __ldcg(place_of + threadIdx.x);
    over_block(best, place, values, places);
    if (threadIdx.x == 0) out[blockIdx.y] = place, counters[blockIdx.y] = 0;
}
"""


@argmax_op.on(Cuda)
def argmax(
    x: Array,
    axis: int | None = None,
    *,
    keepdims: bool = False,
    select_last: bool = False,
) -> Array:
    """Compute :func:`burn.ops.argmax`, along the last axis with a custom kernel."""
    is_last = x.ndim and axis in (-1, x.ndim - 1)
    if select_last or not is_last or not x.size or x.dtype not in TYPES:
        result: Array = argmax_op.kernel(
            x, axis, keepdims=keepdims, select_last=select_last
        )
        return result
    import cupy

    x = cupy.ascontiguousarray(x)
    size = TYPES[x.dtype][1]
    if x.shape[-1] % size or x.data.ptr % 16:
        size = 1
    out = cupy.empty((*x.shape[:-1], 1) if keepdims else x.shape[:-1], np.int64)
    rows, packs = prod(x.shape[:-1]), x.shape[-1] // size
    parts = min(_PARTS, -(-packs // (_THREADS * _EACH)))
    best = cupy.empty((rows, parts), np.float32)
    places = cupy.empty((rows, parts), np.int64)
    args = (x, out, best, places, counters(rows), np.int64(packs))
    _kernel(x.dtype, size)((parts, rows), (_THREADS,), args)
    return out


@cache
def _kernel(dtype: Any, size: int) -> Any:
    import cupy

    return cupy.RawKernel(source(dtype, size), "argmax")


def source(dtype: Any, size: int) -> str:
    """Return CUDA C for elements of ``dtype`` that are read ``size`` at a time."""
    names = f"typedef {TYPES[dtype][0]} T;\n#define SIZE {size}\n"
    return _SOURCE.replace("struct", names + "struct", 1)
