"""Attention of one query per head over a key-value cache."""

from functools import cache
from typing import Any

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.elementwise.epilogues import TYPES
from burn.backend.cuda.launching import INSTRUCTIONS, launch
from burn.backend.cuda.libraries import counters
from burn.ops.decoding import cached_attention as cached_attention_op
from burn.ops.support import Array

_THREADS = 128
#: Keys of a block, and the most heads that share a key.
_KEYS, _HEADS = 64, 8
#: The most numbers of all queries, and of shares of blocks, that a block has.
_NUMBERS, _SHARES = 1024, 2048
_MASKS = {
    np.dtype(np.bool_): "unsigned char",
    np.dtype(np.float16): "__half",
    np.dtype(np.float32): "float",
}
_SOURCE = r"""
#define PART (SIZE_OF_HEAD / SIZE)          // threads of a key
#define AT_ONCE (128 / PART)
#define TURNS (KEYS / AT_ONCE)
#define STEP (SIZE_OF_HEAD + 2)             // a part's numbers of a head
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
    __shared__ float queries[HEADS][SIZE_OF_HEAD], scores[HEADS][KEYS];
    __shared__ float largest[HEADS], totals[HEADS], shares[HEADS][SPLITS];
    __shared__ float sums[4][HEADS][SIZE_OF_HEAD];
    __shared__ __align__(16) T own_key[SIZE_OF_HEAD];
    __shared__ __align__(16) T own_value[SIZE_OF_HEAD];
    __shared__ bool is_last;
    START_NEXT
    const int split = blockIdx.x, splits = SPLITS;
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
    float added[TURNS][MASKS];
    Pack keys[TURNS], values[TURNS];
    bool skips = true;
    #pragma unroll
    for (int h = 0; h < MASKS; h++)
        skips = skips && masked(mask, h * mask_head + past * mask_column) > LOW;
    #pragma unroll
    for (int t = 0; t < TURNS; t++) {
        const int column = first + t * AT_ONCE + threadIdx.x / PART;
        #pragma unroll
        for (int h = 0; h < MASKS; h++)
            added[t][h] = column > past
                ? NONE : masked(mask, h * mask_head + column * mask_column);
    }
    #pragma unroll
    for (int t = 0; t < TURNS; t++) {
        const int column = first + t * AT_ONCE + threadIdx.x / PART;
        bool is_visible = !skips;
        #pragma unroll
        for (int h = 0; h < MASKS; h++) is_visible |= added[t][h] > LOW;
        is_seen[t] = column < past && is_visible;
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
    const long long place = (long long)batch * groups + group;
    if (has_new && threadIdx.x < SIZE_OF_HEAD / 2) {
        #pragma unroll
        for (int half = 0; half < 2; half++) {
            const int d = threadIdx.x + half * (SIZE_OF_HEAD / 2);
            own_key[d] = (T)TURNED(key, d);
            own_value[d] = value[d];
            new_key[place * SIZE_OF_HEAD + d] = own_key[d];
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
                    ? sum * scale + added[t][MASKS > 1 ? h : 0] : NONE;
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
    float* mine = partial + (place * splits + split) * HEADS * STEP;
    T* result = out + ((long long)batch * heads + group * HEADS) * SIZE_OF_HEAD;
    for (int i = threadIdx.x; i < HEADS * SIZE_OF_HEAD; i += 128) {
        const int h = i / SIZE_OF_HEAD, d = i % SIZE_OF_HEAD;
        const float sum = sums[0][h][d] + sums[1][h][d] + sums[2][h][d] + sums[3][h][d];
        if (splits > 1) mine[h * STEP + d] = sum;
        else result[i] = (T)(empty && totals[h] == 0 ? 0 : sum / totals[h]);
    }
    if (splits == 1) return;
    if (threadIdx.x < HEADS) {
        mine[threadIdx.x * STEP + SIZE_OF_HEAD] = largest[threadIdx.x];
        mine[threadIdx.x * STEP + SIZE_OF_HEAD + 1] = totals[threadIdx.x];
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        is_last = atomicAdd(counters + place, 1u) == (unsigned int)splits - 1;
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    if (threadIdx.x == 0) counters[place] = 0;
    // Each part's share of the result is the exponential of how much less its largest
    // score is, divided by the total.
    const float* all = partial + place * splits * HEADS * STEP;
    for (int h = warp; h < HEADS; h += 4) {
        float most = NONE, total = 0;
        for (int s = lane; s < SPLITS; s += 32) {
            const float v = __ldcg(all + (s * HEADS + h) * STEP + SIZE_OF_HEAD);
            shares[h][s] = v;
            most = v != v || v > most ? v : most;
        }
        #pragma unroll
        for (int step = 16; step; step >>= 1) {
            const float v = __shfl_xor_sync(0xffffffffu, most, step);
            most = most != most || most > v ? most : v;
        }
        for (int s = lane; s < SPLITS; s += 32) {
            const float v = shares[h][s] == NONE ? 0 : expf(shares[h][s] - most);
            shares[h][s] = v;
            total += v * __ldcg(all + (s * HEADS + h) * STEP + SIZE_OF_HEAD + 1);
        }
        #pragma unroll
        for (int step = 16; step; step >>= 1)
            total += __shfl_xor_sync(0xffffffffu, total, step);
        if (lane == 0) totals[h] = total;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < HEADS * SIZE_OF_HEAD; i += 128) {
        const int h = i / SIZE_OF_HEAD, d = i % SIZE_OF_HEAD;
        float sum = 0;
        #pragma unroll 16
        for (int s = 0; s < SPLITS; s++)
            sum += shares[h][s] * __ldcg(all + (s * HEADS + h) * STEP + d);
        result[i] = (T)(empty && totals[h] == 0 ? 0 : sum / totals[h]);
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
    """Compute :func:`burn.ops.decoding.cached_attention` without concatenation."""
    operands = (query, key, value, past_key, past_value, mask, cos, sin)
    compute: Any = _by_kernel if _fits(*operands) else cached_attention_op.kernel
    out, new_key = compute(*operands, scale=scale, empty_is_zero=empty_is_zero)
    return out, new_key


def _fits(query: Array, key: Array, value: Array, *others: Any) -> bool:
    past_key, past_value, mask, cos, sin = others
    (_, heads, _, size), groups = query.shape, key.shape[1]
    arrays = (query, key, value, past_key, past_value)
    if query.dtype not in TYPES or any(x.dtype != query.dtype for x in arrays):
        return False
    if key.shape != value.shape or heads % groups:
        return False
    width = TYPES[query.dtype][1]
    threads, shared = size // width, heads // groups
    if size % width or threads & (threads - 1) or not 2 <= threads <= 32:
        return False
    shares = (past_key.shape[2] // _KEYS + 1) * shared
    if shared > min(_HEADS, _NUMBERS // size) or shares > _SHARES:
        return False
    if any(x.strides[-1] != x.itemsize for x in (query, key, value)):
        return False
    if not past_key.flags.c_contiguous or not past_value.flags.c_contiguous:
        return False
    return _have_types(mask, cos, sin, size)


def _have_types(mask: Any, cos: Any, sin: Any, size: int) -> bool:
    if mask is not None and mask.dtype not in _MASKS:
        return False
    if cos is None or sin is None:
        return True
    if cos.dtype != sin.dtype or cos.dtype not in TYPES:
        return False
    return bool(cos.shape == sin.shape == (cos.shape[0], 1, 1, size // 2))


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
        *(query.dtype, size, per_group, splits),
        None if mask is None else mask.dtype,
        None if cos is None else cos.dtype,
        bool(mask_args[2]),
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
    """Return the strides in elements along some axes."""
    return tuple(np.int64(array.strides[axis] // array.itemsize) for axis in axes)


@cache
def _kernel(*form: Any) -> Any:
    import cupy

    return cupy.RawKernel(attention_source(*form), "cached_attention")


def attention_source(
    dtype: Any,
    size: int,
    heads: int,
    splits: int,
    mask: Any,
    angle: Any,
    differs: bool = False,
) -> str:
    """Return CUDA C of the attention of ``heads`` queries per key.

    ``splits`` blocks share the keys; the mask of each head may ``differ``.
    """
    element, width = TYPES[dtype]
    kind = 0 if mask is None else 1 if mask == np.bool_ else 2
    mask_type = _MASKS[np.dtype(np.bool_) if mask is None else mask]
    angle_type = "float" if angle is None else TYPES[angle][0]
    numbers = {
        "SIZE": width,
        "SIZE_OF_HEAD": size,
        "HEADS": heads,
        "KEYS": _KEYS,
        "MASK": kind,
        "SPLITS": splits,
        "MASKS": heads if differs else 1,
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
