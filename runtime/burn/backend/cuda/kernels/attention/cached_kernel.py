"""CUDA C of attention of one query per head over a key-value cache.

A cluster of blocks has the keys of one head of the cache, or a share of them, and all
queries that read them. Its blocks take turns with the keys from the first to the last
that the mask shows, with a running softmax, and send their sums to the first block. The
last cluster to end computes the result from those of all that share keys.

The mask, the angles and the cache are read before the kernels before this one have
ended, unless ``IS_MASK_NEW``: see :mod:`burn.backend.cuda.dependent_launch`.
"""

from typing import Any, NamedTuple

import numpy as np

from burn.backend.cuda.dependent_launch import INSTRUCTIONS
from burn.backend.cuda.kernels.attention.cached_parts import SOURCE
from burn.backend.cuda.kernels.elementwise.epilogues import TYPES

#: The most numbers of the queries of a block.
NUMBERS = 1024
#: Keys of a cluster of blocks.
KEYS = 2048
#: Keys at once for each group of threads, by the threads of a block.
_TURNS = {128: 4, 256: 4, 512: 6}
MASKS = {
    np.dtype(np.bool_): "unsigned char",
    np.dtype(np.float16): "__half",
    np.dtype(np.float32): "float",
}
_SIZES = r"""
#define PART (SIZE_OF_HEAD / SIZE)          // threads of a key
#define AT_ONCE (THREADS / PART)
#define WIDE (CLUSTER * AT_ONCE)            // keys of a cluster at once
#define CHUNK (TURNS * AT_ONCE)             // keys whose scores are in shared memory
#define WARPS (THREADS / 32)
#define STEP (SIZE_OF_HEAD + 2)             // a part's numbers of a head
#define NONE __int_as_float(0xff800000)
#define LOW (sizeof(MaskType) == 2 ? -6e4f : -1e30f)
"""
_SOURCE = r"""
__device__ float masked(const MaskType* mask, long long at) {
    if (MASK == 0) return 0;
    if (MASK == 1) return mask[at] ? 0 : NONE;
    return (float)mask[at];
}
__device__ bool is_visible(const MaskType* mask, long long head, long long at) {
    bool is_any = false;
    #pragma unroll
    for (int h = 0; h < MASKS; h++) is_any |= masked(mask, h * head + at) > LOW;
    return is_any;
}
extern "C" __global__ void __launch_bounds__(THREADS) IN_CLUSTERS cached_attention(
    const T* query, long long query_batch, long long query_head,
    const T* key, long long key_batch, long long key_head,
    const T* value, long long value_batch, long long value_head,
    const T* past_key, const T* past_value,
    const MaskType* mask, long long mask_batch, long long mask_head,
    long long mask_column, const Angle* cosines, const Angle* sines,
    long long angle_batch, T* out, T* new_key, float* partial, unsigned int* counters,
    int past, float scale, int empty
) {
    __shared__ float queries[HEADS][SIZE_OF_HEAD], scores[HEADS][CHUNK];
    __shared__ float largest[HEADS], totals[HEADS], factors[HEADS];
    __shared__ float shares[HEADS][SHARES], sums[WARPS][HEADS * SIZE_OF_HEAD];
    #if CLUSTER > 1
    __shared__ float gathered[CLUSTER][HEADS * STEP];
    #endif
    __shared__ __align__(16) T own_key[SIZE_OF_HEAD];
    __shared__ __align__(16) T own_value[SIZE_OF_HEAD];
    __shared__ int bounds[2];
    __shared__ bool is_last;
    BARRIER("arrive.relaxed")
    const int split = blockIdx.x / CLUSTER, rank = blockIdx.x % CLUSTER;
    const int group = blockIdx.y, groups = gridDim.y, batch = blockIdx.z;
    const int heads = groups * HEADS, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int sub = threadIdx.x % PART, own = threadIdx.x / PART;
    const bool has_new = split == SPLITS - 1;
    if (IS_MASK_NEW) { WAIT }
    query += batch * query_batch + (long long)group * HEADS * query_head;
    key += batch * key_batch + group * key_head;
    value += batch * value_batch + group * value_head;
    mask += batch * mask_batch + (long long)group * HEADS * mask_head;
    const long long entries = ((long long)batch * groups + group) * past * SIZE_OF_HEAD;
    past_key += entries, past_value += entries;
    cosines += batch * angle_batch, sines += batch * angle_batch;
    // What is hidden is not read, unless the new key is hidden as well.
    const int begin = split * KEYS, end = min(begin + KEYS, past);
    bool skips = true;
    #pragma unroll
    for (int h = 0; h < MASKS; h++)
        skips = skips && masked(mask, h * mask_head + past * mask_column) > LOW;
    int low = begin, high = end;
    if (MASK) {
        if (threadIdx.x == 0) bounds[0] = end, bounds[1] = begin;
        __syncthreads();
        low = end, high = begin;
        #pragma unroll 8
        for (int column = begin + threadIdx.x; column < end; column += THREADS) {
            const bool is_any = is_visible(mask, mask_head, column * mask_column);
            low = is_any ? min(low, column) : low;
            high = is_any ? column + 1 : high;
        }
        #pragma unroll
        for (int step = 16; step; step >>= 1) {
            low = min(low, __shfl_xor_sync(0xffffffffu, low, step));
            high = max(high, __shfl_xor_sync(0xffffffffu, high, step));
        }
        if (lane == 0) atomicMin(bounds, low), atomicMax(bounds + 1, high);
        __syncthreads();
        low = skips ? bounds[0] : begin, high = skips ? bounds[1] : end;
    }
    if (low >= high) low = high = begin;
    const int count = high - low + has_new;  // the new key comes after the others
    if (threadIdx.x < HEADS) largest[threadIdx.x] = NONE, totals[threadIdx.x] = 0;
    bool is_seen[TURNS];
    float added[TURNS][MASKS];
    Pack keys[TURNS], values[TURNS];
    #define FETCH(start) { \
        _Pragma("unroll") \
        for (int t = 0; t < TURNS; t++) { \
            const int number = (start) + t * WIDE + rank * AT_ONCE + own; \
            const int column = low + number < high ? low + number : past; \
            bool is_any = !skips; \
            _Pragma("unroll") \
            for (int h = 0; h < MASKS; h++) { \
                added[t][h] = number < count \
                    ? masked(mask, h * mask_head + column * mask_column) : NONE; \
                is_any |= added[t][h] > LOW; \
            } \
            is_seen[t] = column < past && is_any; \
            if (is_seen[t]) { \
                const long long at = (long long)column * SIZE_OF_HEAD + sub * SIZE; \
                keys[t] = *(const Pack*)(past_key + at); \
                values[t] = *(const Pack*)(past_value + at); \
            } \
        } \
    }
    FETCH(0)
    if (!IS_MASK_NEW) { WAIT }
    START_NEXT  // after the wait: what is read here is complete for later kernels
    for (int i = threadIdx.x; i < HEADS * SIZE_OF_HEAD; i += THREADS) {
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
            if (rank == 0) new_key[place * SIZE_OF_HEAD + d] = own_key[d];
        }
    }
    float sum[HEADS][SIZE] = {};
    __syncthreads();
    for (int start = 0; start < count; start += TURNS * WIDE) {
        if (start) FETCH(start)
        #pragma unroll
        for (int t = 0; t < TURNS; t++) {
            const int at = t * AT_ONCE + own;
            const int number = start + t * WIDE + rank * AT_ONCE + own;
            if (has_new && number == count - 1) {
                is_seen[t] = true;
                keys[t] = *(const Pack*)(own_key + sub * SIZE);
                values[t] = *(const Pack*)(own_value + sub * SIZE);
            }
            #pragma unroll
            for (int h = 0; h < HEADS; h++) {
                float v = 0;
                if (is_seen[t]) {
                    #pragma unroll
                    for (int k = 0; k < SIZE; k++)
                        v = fmaf((float)keys[t].at[k], queries[h][sub * SIZE + k], v);
                }
                #pragma unroll
                for (int step = PART / 2; step; step >>= 1)
                    v += __shfl_xor_sync(0xffffffffu, v, step);
                if (sub == 0)
                    scores[h][at] = is_seen[t]
                        ? v * scale + added[t][MASKS > 1 ? h : 0] : NONE;
            }
        }
        __syncthreads();
        for (int h = warp; h < HEADS; h += WARPS) {
            float most = largest[h], total = 0;
            for (int i = lane; i < CHUNK; i += 32) {
                const float v = scores[h][i];
                most = v != v || v > most ? v : most;
            }
            most = largest_of_warp(most);
            for (int i = lane; i < CHUNK; i += 32) {
                const float v = most == NONE ? 0 : expf(scores[h][i] - most);
                scores[h][i] = v;
                total += v;
            }
            total = sum_of_warp(total);
            if (lane == 0) {
                factors[h] = largest[h] == NONE ? 0 : expf(largest[h] - most);
                totals[h] = totals[h] * factors[h] + total;
                largest[h] = most;
            }
        }
        __syncthreads();
        #pragma unroll
        for (int h = 0; h < HEADS; h++) {
            if (start) {
                #pragma unroll
                for (int k = 0; k < SIZE; k++) sum[h][k] *= factors[h];
            }
            #pragma unroll
            for (int t = 0; t < TURNS; t++) {
                if (!is_seen[t]) continue;
                const float weight = scores[h][t * AT_ONCE + own];
                #pragma unroll
                for (int k = 0; k < SIZE; k++)
                    sum[h][k] = fmaf(weight, (float)values[t].at[k], sum[h][k]);
            }
        }
        if (start + TURNS * WIDE < count) __syncthreads();  // scores are overwritten
    }
    #pragma unroll
    for (int h = 0; h < HEADS; h++) {
        #pragma unroll
        for (int k = 0; k < SIZE; k++) {
            #pragma unroll
            for (int step = PART; step < 32; step <<= 1)
                sum[h][k] += __shfl_xor_sync(0xffffffffu, sum[h][k], step);
        }
        if (lane < PART) {
            #pragma unroll
            for (int k = 0; k < SIZE; k++)
                sums[warp][h * SIZE_OF_HEAD + sub * SIZE + k] = sum[h][k];
        }
    }
    __syncthreads();
    #if CLUSTER > 1
    float* place_of_block = gathered[rank];
    BARRIER("wait")  // the first block runs
    for (int i = threadIdx.x; i < HEADS * SIZE_OF_HEAD; i += THREADS) {
        float* to = place_of_block + i / SIZE_OF_HEAD * STEP + i % SIZE_OF_HEAD;
        send(to, sum_of_block(sums, i));
    }
    if (threadIdx.x < HEADS) {
        float* to = place_of_block + threadIdx.x * STEP + SIZE_OF_HEAD;
        send(to, largest[threadIdx.x]), send(to + 1, totals[threadIdx.x]);
    }
    BARRIER("arrive.release")
    if (rank) return;
    BARRIER("wait.acquire")
    weigh<false>(gathered[0], CLUSTER, shares, largest, totals);
    #define SUM(i) (weighted<false, CLUSTER>(gathered[0], shares, i))
    #else
    #define SUM(i) sum_of_block(sums, i)
    #endif
    T* result = out + ((long long)batch * heads + group * HEADS) * SIZE_OF_HEAD;
    #define WRITE(i, sum) { \
        const float total = totals[(i) / SIZE_OF_HEAD]; \
        result[i] = (T)(empty && total == 0 ? 0 : (sum) / total); \
    }
    if (SPLITS == 1) {
        for (int i = threadIdx.x; i < HEADS * SIZE_OF_HEAD; i += THREADS)
            WRITE(i, SUM(i))
        return;
    }
    float* mine = partial + (place * SPLITS + split) * HEADS * STEP;
    for (int i = threadIdx.x; i < HEADS * SIZE_OF_HEAD; i += THREADS)
        mine[i / SIZE_OF_HEAD * STEP + i % SIZE_OF_HEAD] = SUM(i);
    if (threadIdx.x < HEADS) {
        mine[threadIdx.x * STEP + SIZE_OF_HEAD] = largest[threadIdx.x];
        mine[threadIdx.x * STEP + SIZE_OF_HEAD + 1] = totals[threadIdx.x];
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        is_last = atomicAdd(counters + place, 1u) == SPLITS - 1u;
    __syncthreads();
    if (!is_last) return;
    __threadfence();
    if (threadIdx.x == 0) counters[place] = 0;
    const float* all = partial + place * SPLITS * HEADS * STEP;
    weigh<true>(all, SPLITS, shares, largest, totals);
    for (int i = threadIdx.x; i < HEADS * SIZE_OF_HEAD; i += THREADS)
        WRITE(i, (weighted<true, SPLITS>(all, shares, i)))
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


class Form(NamedTuple):
    """The constants that the kernel is compiled with.

    ``heads`` are the queries per key, ``splits`` the clusters of ``cluster`` blocks of
    ``threads`` threads that share keys. The mask
    of each head may differ (``has_masks``), and be written by the kernels just before
    (``is_mask_new``).
    """

    dtype: Any
    size: int
    heads: int
    splits: int
    cluster: int
    threads: int
    mask: Any
    angle: Any
    has_masks: bool = False
    is_mask_new: bool = True


def source(form: Form) -> str:
    """Return CUDA C of the kernel."""
    element, width = TYPES[form.dtype]
    kind = 0 if form.mask is None else 1 if form.mask == np.bool_ else 2
    mask_type = MASKS[np.dtype(np.bool_) if form.mask is None else form.mask]
    angle_type = "float" if form.angle is None else TYPES[form.angle][0]
    numbers = {
        "SIZE": width,
        "SIZE_OF_HEAD": form.size,
        "HEADS": form.heads,
        "THREADS": form.threads,
        "TURNS": _TURNS[form.threads],
        "KEYS": KEYS,
        "MASK": kind,
        "SPLITS": form.splits,
        "CLUSTER": form.cluster,
        "SHARES": max(form.splits, form.cluster),
        "MASKS": form.heads if form.has_masks else 1,
        "IS_MASK_NEW": int(form.is_mask_new),
    }
    return (
        "#include <cuda_fp16.h>\n"
        + "".join(f"#define {name} {value}\n" for name, value in numbers.items())
        + f"typedef {element} T;\ntypedef {mask_type} MaskType;\n"
        + f"typedef {angle_type} Angle;\n"
        + "struct __align__(16) Pack { T at[SIZE]; };\n"
        + INSTRUCTIONS
        + _TURNED[form.angle is not None]
        + _SIZES
        + SOURCE
        + _SOURCE
    )
