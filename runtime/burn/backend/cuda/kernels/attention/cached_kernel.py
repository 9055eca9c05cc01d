"""CUDA C of attention of one query per head over a key-value cache.

A block has the keys of one head of the cache, or a share of them, and all queries that
read them. It walks through chunks of keys from the first to the last that the mask
shows, with a running softmax. Blocks that share keys leave partial results, of which
the last block to end computes the result.

The mask, the angles and the cache are read before the kernels before this one have
ended, unless ``IS_MASK_NEW``: see :mod:`burn.backend.cuda.dependent_launch`.
"""

from typing import Any, NamedTuple

import numpy as np

from burn.backend.cuda.dependent_launch import INSTRUCTIONS
from burn.backend.cuda.kernels.elementwise.epilogues import TYPES

#: The most numbers of the queries of a block, with the threads of a block.
NUMBERS, _THREADS = 1024, 256
#: The most numbers and queries of blocks that have more threads than that.
_FEW_NUMBERS, _FEW_HEADS, _MANY_THREADS = 512, 4, 512
#: Keys of a block.
KEYS = 2048
#: Keys at once for each group of threads, by the threads of a block.
_TURNS = {_THREADS: 4, _MANY_THREADS: 6}
MASKS = {
    np.dtype(np.bool_): "unsigned char",
    np.dtype(np.float16): "__half",
    np.dtype(np.float32): "float",
}
_SOURCE = r"""
#define PART (SIZE_OF_HEAD / SIZE)          // threads of a key
#define AT_ONCE (THREADS / PART)
#define CHUNK (TURNS * AT_ONCE)             // keys whose scores are in shared memory
#define WARPS (THREADS / 32)
#define STEP (SIZE_OF_HEAD + 2)             // a part's numbers of a head
#define NONE __int_as_float(0xff800000)
#define LOW (sizeof(MaskType) == 2 ? -6e4f : -1e30f)
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
__device__ float largest_of_warp(float most) {
    #pragma unroll
    for (int step = 16; step; step >>= 1) {
        const float v = __shfl_xor_sync(0xffffffffu, most, step);
        most = most != most || most > v ? most : v;
    }
    return most;
}
__device__ float sum_of_warp(float total) {
    #pragma unroll
    for (int step = 16; step; step >>= 1)
        total += __shfl_xor_sync(0xffffffffu, total, step);
    return total;
}
extern "C" __global__ void __launch_bounds__(THREADS) cached_attention(
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
    __shared__ float shares[HEADS][SPLITS], sums[WARPS][HEADS][SIZE_OF_HEAD];
    __shared__ __align__(16) T own_key[SIZE_OF_HEAD];
    __shared__ __align__(16) T own_value[SIZE_OF_HEAD];
    __shared__ int bounds[2];
    __shared__ bool is_last;
    const int split = blockIdx.x, splits = SPLITS;
    const int group = blockIdx.y, groups = gridDim.y, batch = blockIdx.z;
    const int heads = groups * HEADS, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int sub = threadIdx.x % PART, own = threadIdx.x / PART;
    const bool has_new = split == splits - 1;
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
    int low = MASK && skips ? end : begin, high = MASK && skips ? begin : end;
    if (MASK && skips) {
        if (threadIdx.x == 0) bounds[0] = end, bounds[1] = begin;
        __syncthreads();
        for (int column = begin + threadIdx.x; column < end; column += THREADS)
            if (is_visible(mask, mask_head, column * mask_column)) {
                low = min(low, column);
                high = column + 1;
            }
        #pragma unroll
        for (int step = 16; step; step >>= 1) {
            low = min(low, __shfl_xor_sync(0xffffffffu, low, step));
            high = max(high, __shfl_xor_sync(0xffffffffu, high, step));
        }
        if (lane == 0) atomicMin(bounds, low), atomicMax(bounds + 1, high);
        __syncthreads();
        low = bounds[0], high = bounds[1];
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
            const int number = (start) + t * AT_ONCE + own; \
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
            new_key[place * SIZE_OF_HEAD + d] = own_key[d];
        }
    }
    float sum[HEADS][SIZE] = {};
    __syncthreads();
    for (int start = 0; start < count; start += CHUNK) {
        if (start) FETCH(start)
        #pragma unroll
        for (int t = 0; t < TURNS; t++) {
            const int at = t * AT_ONCE + own;
            if (has_new && start + at == count - 1) {
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
        if (start + CHUNK < count) __syncthreads();  // scores are overwritten
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
            for (int k = 0; k < SIZE; k++) sums[warp][h][sub * SIZE + k] = sum[h][k];
        }
    }
    __syncthreads();
    float* mine = partial + (place * splits + split) * HEADS * STEP;
    T* result = out + ((long long)batch * heads + group * HEADS) * SIZE_OF_HEAD;
    for (int i = threadIdx.x; i < HEADS * SIZE_OF_HEAD; i += THREADS) {
        const int h = i / SIZE_OF_HEAD, d = i % SIZE_OF_HEAD;
        float whole = 0;
        #pragma unroll
        for (int w = 0; w < WARPS; w++) whole += sums[w][h][d];
        if (splits > 1) mine[h * STEP + d] = whole;
        else result[i] = (T)(empty && totals[h] == 0 ? 0 : whole / totals[h]);
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
    for (int h = warp; h < HEADS; h += WARPS) {
        float most = NONE, total = 0;
        for (int s = lane; s < SPLITS; s += 32) {
            const float v = __ldcg(all + (s * HEADS + h) * STEP + SIZE_OF_HEAD);
            shares[h][s] = v;
            most = v != v || v > most ? v : most;
        }
        most = largest_of_warp(most);
        for (int s = lane; s < SPLITS; s += 32) {
            const float v = shares[h][s] == NONE ? 0 : expf(shares[h][s] - most);
            shares[h][s] = v;
            total += v * __ldcg(all + (s * HEADS + h) * STEP + SIZE_OF_HEAD + 1);
        }
        total = sum_of_warp(total);
        if (lane == 0) totals[h] = total;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < HEADS * SIZE_OF_HEAD; i += THREADS) {
        const int h = i / SIZE_OF_HEAD, d = i % SIZE_OF_HEAD;
        float whole = 0;
        #pragma unroll 16
        for (int s = 0; s < SPLITS; s++)
            whole += shares[h][s] * __ldcg(all + (s * HEADS + h) * STEP + d);
        result[i] = (T)(empty && totals[h] == 0 ? 0 : whole / totals[h]);
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


class Form(NamedTuple):
    """The constants that the kernel is compiled with.

    ``heads`` are the queries per key, ``splits`` the blocks that share keys. The mask
    of each head may differ (``has_masks``), and be written by the kernels just before
    (``is_mask_new``).
    """

    dtype: Any
    size: int
    heads: int
    splits: int
    mask: Any
    angle: Any
    has_masks: bool = False
    is_mask_new: bool = True

    @property
    def threads(self) -> int:
        """The threads of a block."""
        is_small = self.heads * self.size <= _FEW_NUMBERS and self.heads <= _FEW_HEADS
        return _MANY_THREADS if is_small else _THREADS


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
        + _SOURCE
    )
