"""Attention of one query to a cache of keys and values, and writing into caches."""

from functools import cache
from math import prod
from typing import Any

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.epilogues import TYPES
from burn.backend.cuda.launching import INSTRUCTIONS, launch
from burn.backend.cuda.libraries import counters
from burn.ops.caches import update_slice as update_slice_op
from burn.ops.decoding import cached_attention as cached_attention_op
from burn.ops.support import Array

_THREADS = 128
#: Keys of a block, and the most heads that share a key.
_KEYS, _HEADS = 64, 8
_MASKS = {
    np.dtype(np.bool_): "unsigned char",
    np.dtype(np.float16): "__half",
    np.dtype(np.float32): "float",
}
_SOURCE = r"""
#define PART (SIZE_OF_HEAD / SIZE)          // threads of a key
#define AT_ONCE (128 / PART)
#define TURNS (KEYS / AT_ONCE)
#define NONE __int_as_float(0xff800000)
#define LOW (sizeof(MaskType) == 2 ? -6e4f : -1e30f)
__device__ float masked(const MaskType* mask, long long at) {
    if (MASK == 0) return 0;
    if (MASK == 1) return mask[at] ? 0 : NONE;
    return (float)mask[at];
}
extern "C" __global__ void __launch_bounds__(128) cached_attention(
    const T* query, long long query_batch, long long query_head,
    const T* key, long long key_batch, long long key_head,
    const T* value, long long value_batch, long long value_head,
    const T* past_key, const T* past_value,
    const MaskType* mask, long long mask_batch, long long mask_head,
    long long mask_column, const Angle* cosines, const Angle* sines,
    long long angle_batch, T* out, T* new_key, float* partial, unsigned int* counters,
    int past, float scale, int empty
) {
    __shared__ float queries[HEADS][SIZE_OF_HEAD];
    __shared__ float scores[HEADS][KEYS];
    __shared__ float largest[HEADS], totals[HEADS];
    __shared__ float sums[4][HEADS][SIZE_OF_HEAD];
    __shared__ __align__(16) T own_key[SIZE_OF_HEAD];
    __shared__ __align__(16) T own_value[SIZE_OF_HEAD];
    __shared__ bool is_last;
    START_NEXT
    const int split = blockIdx.x, splits = gridDim.x;
    const int group = blockIdx.y, groups = gridDim.y, batch = blockIdx.z;
    const int heads = groups * HEADS, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first = split * KEYS, sub = threadIdx.x % PART;
    const bool has_new = split == splits - 1;
    WAIT
    query += batch * query_batch + (long long)group * HEADS * query_head;
    key += batch * key_batch + group * key_head;
    value += batch * value_batch + group * value_head;
    mask += batch * mask_batch + (long long)group * HEADS * mask_head;
    const long long entries = ((long long)batch * groups + group) * past * SIZE_OF_HEAD;
    past_key += entries, past_value += entries;
    cosines += batch * angle_batch, sines += batch * angle_batch;
    // What is hidden is not read, unless the new key is hidden as well.
    bool is_seen[TURNS];
    Pack keys[TURNS], values[TURNS];
    bool skips = true;
    #pragma unroll
    for (int h = 0; h < HEADS; h++)
        skips = skips && masked(mask, h * mask_head + past * mask_column) > LOW;
    #pragma unroll
    for (int t = 0; t < TURNS; t++) {
        const int column = first + t * AT_ONCE + threadIdx.x / PART;
        is_seen[t] = column < past;
        bool is_visible = !skips;
        if (is_seen[t]) {
            #pragma unroll
            for (int h = 0; h < HEADS; h++)
                is_visible = is_visible
                    || masked(mask, h * mask_head + column * mask_column) > LOW;
        }
        is_seen[t] = is_seen[t] && is_visible;
        if (is_seen[t]) {
            const long long at = (long long)column * SIZE_OF_HEAD + sub * SIZE;
            keys[t] = *(const Pack*)(past_key + at);
            values[t] = *(const Pack*)(past_value + at);
        }
    }
    for (int i = threadIdx.x; i < HEADS * SIZE_OF_HEAD; i += 128) {
        const int h = i / SIZE_OF_HEAD, d = i % SIZE_OF_HEAD;
        queries[h][d] = TURNED(query + h * query_head, d);
    }
    if (has_new && threadIdx.x < SIZE_OF_HEAD / 2) {
        #pragma unroll
        for (int half = 0; half < 2; half++) {
            const int d = threadIdx.x + half * (SIZE_OF_HEAD / 2);
            own_key[d] = (T)TURNED(key, d);
            own_value[d] = value[d];
            new_key[((long long)batch * groups + group) * SIZE_OF_HEAD + d] = own_key[d];
        }
    }
    __syncthreads();
    #pragma unroll
    for (int t = 0; t < TURNS; t++) {
        const int place = t * AT_ONCE + threadIdx.x / PART, column = first + place;
        if (has_new && column == past) {
            is_seen[t] = true;
            keys[t] = *(const Pack*)(own_key + sub * SIZE);
            values[t] = *(const Pack*)(own_value + sub * SIZE);
        }
        #pragma unroll
        for (int h = 0; h < HEADS; h++) {
            float sum = 0;
            if (is_seen[t]) {
                #pragma unroll
                for (int k = 0; k < SIZE; k++)
                    sum = fmaf((float)keys[t].at[k], queries[h][sub * SIZE + k], sum);
            }
            #pragma unroll
            for (int step = PART / 2; step; step >>= 1)
                sum += __shfl_xor_sync(0xffffffffu, sum, step);
            if (sub == 0)
                scores[h][place] = is_seen[t]
                    ? sum * scale + masked(mask, h * mask_head + column * mask_column)
                    : NONE;
        }
    }
    __syncthreads();
    for (int h = warp; h < HEADS; h += 4) {
        float most = NONE, total = 0;
        for (int i = lane; i < KEYS; i += 32) {
            const float v = scores[h][i];
            most = v != v || v > most ? v : most;
        }
        #pragma unroll
        for (int step = 16; step; step >>= 1) {
            const float v = __shfl_xor_sync(0xffffffffu, most, step);
            most = most != most || most > v ? most : v;
        }
        for (int i = lane; i < KEYS; i += 32) {
            const float v = most == NONE ? 0 : expf(scores[h][i] - most);
            scores[h][i] = v;
            total += v;
        }
        #pragma unroll
        for (int step = 16; step; step >>= 1)
            total += __shfl_xor_sync(0xffffffffu, total, step);
        if (lane == 0) largest[h] = most, totals[h] = total;
    }
    __syncthreads();
    #pragma unroll
    for (int h = 0; h < HEADS; h++) {
        float sum[SIZE];
        #pragma unroll
        for (int k = 0; k < SIZE; k++) sum[k] = 0;
        #pragma unroll
        for (int t = 0; t < TURNS; t++) {
            if (!is_seen[t]) continue;
            const float weight = scores[h][t * AT_ONCE + threadIdx.x / PART];
            #pragma unroll
            for (int k = 0; k < SIZE; k++)
                sum[k] = fmaf(weight, (float)values[t].at[k], sum[k]);
        }
        #pragma unroll
        for (int k = 0; k < SIZE; k++) {
            #pragma unroll
            for (int step = PART; step < 32; step <<= 1)
                sum[k] += __shfl_xor_sync(0xffffffffu, sum[k], step);
        }
        if (lane < PART) {
            #pragma unroll
            for (int k = 0; k < SIZE; k++) sums[warp][h][sub * SIZE + k] = sum[k];
        }
    }
    __syncthreads();
    const long long place = (long long)batch * groups + group;
    float* mine = partial + (place * splits + split) * HEADS * (SIZE_OF_HEAD + 2);
    T* result = out + ((long long)batch * heads + group * HEADS) * SIZE_OF_HEAD;
    for (int i = threadIdx.x; i < HEADS * SIZE_OF_HEAD; i += 128) {
        const int h = i / SIZE_OF_HEAD, d = i % SIZE_OF_HEAD;
        const float sum = sums[0][h][d] + sums[1][h][d] + sums[2][h][d] + sums[3][h][d];
        if (splits > 1) mine[h * (SIZE_OF_HEAD + 2) + d] = sum;
        else result[i] = (T)(empty && totals[h] == 0 ? 0 : sum / totals[h]);
    }
    if (splits == 1) return;
    if (threadIdx.x < HEADS) {
        mine[threadIdx.x * (SIZE_OF_HEAD + 2) + SIZE_OF_HEAD] = largest[threadIdx.x];
        mine[threadIdx.x * (SIZE_OF_HEAD + 2) + SIZE_OF_HEAD + 1] = totals[threadIdx.x];
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        is_last = atomicAdd(counters + place, 1u) == (unsigned int)splits - 1;
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    if (threadIdx.x == 0) counters[place] = 0;
    const volatile float* all = partial + place * splits * HEADS * (SIZE_OF_HEAD + 2);
    for (int i = threadIdx.x; i < HEADS * SIZE_OF_HEAD; i += 128) {
        const int h = i / SIZE_OF_HEAD, d = i % SIZE_OF_HEAD;
        float most = NONE, total = 0, sum = 0;
        for (int s = 0; s < splits; s++) {
            const volatile float* at = all + (s * HEADS + h) * (SIZE_OF_HEAD + 2);
            const float v = at[SIZE_OF_HEAD];
            most = v != v || v > most ? v : most;
        }
        for (int s = 0; s < splits; s++) {
            const volatile float* at = all + (s * HEADS + h) * (SIZE_OF_HEAD + 2);
            const float v = at[SIZE_OF_HEAD];
            if (v == NONE) continue;
            const float factor = expf(v - most);
            total += factor * at[SIZE_OF_HEAD + 1];
            sum += factor * at[d];
        }
        result[i] = (T)(empty && total == 0 ? 0 : sum / total);
    }
}
"""
_TURNED = {
    False: "#define TURNED(x, d) ((float)(x)[d])\n",
    True: r"""
__device__ float turned(const T* x, int d, const Angle* cosines, const Angle* sines) {
    const int pair = d % (SIZE_OF_HEAD / 2);
    const float a = (float)x[pair], b = (float)x[pair + SIZE_OF_HEAD / 2];
    const float c = (float)cosines[pair], s = (float)sines[pair];
    return (float)(T)(d < SIZE_OF_HEAD / 2 ? a * c - b * s : a * s + b * c);
}
#define TURNED(x, d) turned(x, d, cosines, sines)
""",
}
_WRITE = r"""
extern "C" __global__ void write_slices(const long long* table) {
    const long long* row = table + blockIdx.x * 8LL;
    char* target = (char*)row[0];
    const char* source = (const char*)row[1];
    const long long outer = row[3], bytes = row[4], target_step = row[5];
    long long start = *(const long long*)row[2] * row[6];
    const long long most = target_step - bytes;
    start = start < 0 ? 0 : start > most ? most : start;
    const bool is_wide = ((row[0] | row[1] | bytes | target_step | start) & 15) == 0;
    const int size = is_wide ? 16 : 1;
    const long long each = bytes / size;
    for (long long i = threadIdx.x; i < outer * each; i += blockDim.x) {
        char* to = target + i / each * target_step + start + i % each * size;
        const char* from = source + i * size;
        if (is_wide) *(uint4*)to = *(const uint4*)from;
        else *to = *from;
    }
}
"""


@cached_attention_op.on(Cuda)
def cached_attention(
    query: Array,
    key: Array,
    value: Array,
    past_key: Array,
    past_value: Array,
    mask: Array | None = None,
    cos: Array | None = None,
    sin: Array | None = None,
    *,
    scale: float,
    empty_is_zero: bool = True,
) -> tuple[Array, Array]:
    """:func:`burn.ops.decoding.cached_attention`, one kernel that joins nothing."""
    operands = (query, key, value, past_key, past_value, mask, cos, sin)
    static: Any = {"scale": scale, "empty_is_zero": empty_is_zero}
    if not _fits(*operands):
        result: tuple[Array, Array] = cached_attention_op.kernel(*operands, **static)
        return result
    return _by_kernel(*operands, **static)


def _fits(query: Array, key: Array, value: Array, *others: Array | None) -> bool:
    past_key, past_value, mask, cos, sin = others
    assert past_key is not None and past_value is not None
    (_, heads, _, size), groups = query.shape, key.shape[1]
    if query.dtype not in TYPES or key.shape != value.shape:
        return False
    if any(x.dtype != query.dtype for x in (key, value, past_key, past_value)):
        return False
    width = TYPES[query.dtype][1]
    threads = size // width
    if size % width or threads & (threads - 1) or not 0 < threads <= 32:
        return False
    if any(x.strides[-1] != x.itemsize for x in (query, key, value)):
        return False
    if not past_key.flags.c_contiguous or not past_value.flags.c_contiguous:
        return False
    is_even = _KEYS % (_THREADS // threads) == 0
    if not is_even or heads % groups or heads // groups > _HEADS:
        return False
    if mask is not None and mask.dtype not in _MASKS:
        return False
    if cos is None or sin is None:
        return True
    shape = (cos.shape[0], 1, 1, size // 2)
    return (
        cos.shape == sin.shape == shape and cos.dtype == sin.dtype and cos.dtype in TYPES
    )


def _by_kernel(
    query: Array,
    key: Array,
    value: Array,
    past_key: Array,
    past_value: Array,
    mask: Array | None,
    cos: Array | None,
    sin: Array | None,
    *,
    scale: float,
    empty_is_zero: bool,
) -> tuple[Array, Array]:
    import cupy

    (batch, heads, _, size), groups = query.shape, key.shape[1]
    past, per_group = past_key.shape[2], heads // groups
    splits = past // _KEYS + 1  # the last one has the new key
    out = cupy.empty((batch, heads, 1, size), query.dtype)
    new_key = cupy.empty((batch, groups, 1, size), query.dtype)
    partial = cupy.empty((batch * groups * splits, per_group, size + 2), np.float32)
    mask_args: tuple[Any, ...] = (np.uint64(0), *(np.int64(0),) * 3)
    if mask is not None:
        mask = cupy.broadcast_to(mask, (batch, heads, 1, past + 1))
        mask_args = (mask, *_steps(mask, 0, 1, 3))
    angles: tuple[Any, ...] = (np.uint64(0), np.uint64(0), np.int64(0))
    if cos is not None and sin is not None:
        cos, sin = cupy.ascontiguousarray(cos), cupy.ascontiguousarray(sin)
        step = size // 2 if cos.shape[0] > 1 else 0
        angles = (cos, sin, np.int64(step))
    kernel = _kernel(
        *(query.dtype, size, per_group),
        None if mask is None else mask.dtype,
        None if cos is None else cos.dtype,
    )
    args = (
        *(query, *_steps(query, 0, 1), key, *_steps(key, 0, 1)),
        *(value, *_steps(value, 0, 1), past_key, past_value),
        *(*mask_args, *angles, out, new_key, partial, counters(batch * groups)),
        *(np.int32(past), np.float32(scale), np.int32(empty_is_zero)),
    )
    launch(kernel, (splits, groups, batch), _THREADS, args)
    return out, new_key


def _steps(array: Array, *axes: int) -> tuple[Any, ...]:
    """The elements between neighbours along some axes."""
    return tuple(np.int64(array.strides[axis] // array.itemsize) for axis in axes)


@cache
def _kernel(dtype: Any, size: int, heads: int, mask: Any, angle: Any) -> Any:
    import cupy

    code = attention_source(dtype, size, heads, mask, angle)
    return cupy.RawKernel(code, "cached_attention")


def attention_source(dtype: Any, size: int, heads: int, mask: Any, angle: Any) -> str:
    """CUDA C of the attention of ``heads`` queries to each key."""
    element, width = TYPES[dtype]
    kind = 0 if mask is None else 1 if mask == np.bool_ else 2
    mask_type = _MASKS[np.dtype(np.bool_) if mask is None else mask]
    angle_type = "float" if angle is None else TYPES[angle][0]
    numbers = {
        **{"SIZE": width, "SIZE_OF_HEAD": size, "HEADS": heads},
        **{"KEYS": _KEYS, "MASK": kind},
    }
    return (
        "#include <cuda_fp16.h>\n"
        + "".join(f"#define {name} {value}\n" for name, value in numbers.items())
        + f"typedef {element} T;\ntypedef {mask_type} MaskType;\n"
        + f"typedef {angle_type} Angle;\n"
        + "struct __align__(16) Pack { T at[SIZE]; };\n"
        + INSTRUCTIONS
        + _TURNED[angle is not None]
        + _SOURCE
    )


@update_slice_op.on(Cuda)
def update_slice(x: Array, update: Array, start: Array, *, axis: int = -2) -> Array:
    """:func:`burn.ops.caches.update_slice` without reading ``start`` on the host."""
    import cupy

    out = cupy.array(x, order="C")
    start = cupy.asarray(start, np.int64)
    write_slices(slices_table([(out, update, start, axis)]))
    return out


def slices_table(slices: list[tuple[Array, Array, Array, int]]) -> tuple[Any, Any]:
    """The table of writes of ``update`` into ``x`` from ``start`` on along ``axis``.

    It is on the device, beside arrays that have to live as long. Each ``x`` is
    row-major; updates that are not are copied.
    """
    import cupy

    rows, kept = [], []
    for x, update, start, axis in slices:
        axis %= x.ndim
        if not axis:
            x, update, axis = x[None], update[None], 1
        if not all(part.flags.c_contiguous for part in update):
            update = cupy.ascontiguousarray(update)
        if start.dtype != np.int64:
            start = start.astype(np.int64)
        inner = prod(x.shape[axis + 1 :]) * x.itemsize
        outer = prod(x.shape[1:axis])
        sizes = (outer, update.shape[axis] * inner, x.shape[axis] * inner, inner, 0)
        for target, source in zip(x, update, strict=True):
            rows.append((target.data.ptr, source.data.ptr, start.data.ptr, *sizes))
        kept += [x, update, start]
    return cupy.asarray(np.array(rows, np.int64).reshape(-1, 8)), kept


def write_slices(table: tuple[Any, Any]) -> None:
    """Write what a table tells, on CuPy's current stream."""
    rows, _ = table
    if len(rows):
        _write_kernel()((len(rows),), (_THREADS,), (rows,))


@cache
def _write_kernel() -> Any:
    import cupy

    return cupy.RawKernel(_WRITE, "write_slices")
