"""Products of two to eight rows on tensor cores, limited by the memory of the weights.

``mma.m16n8k16`` multiplies 16 rows of weights by up to eight rows of ``x``. Which of
the inner numbers a thread has does not matter as long as it is the same for both
operands: a thread reads 16 bytes of a row at once, and four threads 64.
"""

from functools import cache

import numpy as np

from burn.backend.cuda.kernels.products.row_kernels import (
    WARPS,
    Form,
    RowKernel,
    compile_kernel,
    source,
)

#: The first compute capability that has the instruction, times ten.
CAPABILITY = 80
#: Rows of weights of an instruction, and inner numbers that a warp reads at once.
_TILE, _CHUNK = 16, 32
#: The most chunks of weights that a thread has in registers, for one block of a
#: multiprocessor and for two, which share its registers.
_DEPTH = (8, 4)
#: The same for the vectors of a row of ``x`` while it is normalized.
_HELD = (8, 4)
#: Vectors between rows of ``x`` in shared memory that keep them in different banks.
_PADDING = 4
_SOURCE = r"""
#define COLUMNS (8 / SPLIT * 16)  // results of a block at a time
struct Chunk { Pack upper, lower; };
__device__ void multiply(
    float (&c)[4], const Chunk& weights, const Pack& x
) {
    const unsigned* a = (const unsigned*)&weights.upper;
    const unsigned* b = (const unsigned*)&weights.lower;
    const unsigned* r = (const unsigned*)&x;
    #pragma unroll
    for (int k = 0; k < 4; k += 2)
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[k]), "r"(b[k]), "r"(a[k + 1]), "r"(b[k + 1]), "r"(r[k]),
              "r"(r[k + 1]));
}
extern "C" __global__ void __launch_bounds__(256, BLOCKS) row_linear(
    const Pack* x, const Pack* weight, const Pack* gate, const T* bias,
    const T* residual, const Pack* norm_weight, const Pack* norm_bias, T* out,
    float epsilon
) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ float parts[2][1 + GATE][8][128];
    START_NEXT
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int part = warp % SPLIT, tile = warp / SPLIT * 16 + lane / 4;
    const int first = part * STEPS * 4 + lane % 4;  // vector of the first chunk
    const Pack zero = {};
    Chunk now[1 + GATE][DEPTH];
    #define FETCH(slot, base, step) { \
        const int row = (base) + tile, at = first + (step) * 4; \
        const bool is_inside = at < PACKS; \
        _Pragma("unroll") \
        for (int s = 0; s < 1 + GATE; s++) { \
            const Pack* from = (s ? gate : weight) + (long long)row * PACKS + at; \
            now[s][slot].upper = is_inside && row < N ? fetched(from) : zero; \
            now[s][slot].lower = \
                is_inside && row + 8 < N ? fetched(from + 8 * PACKS) : zero; \
        } \
    }
    const int stride = gridDim.x * COLUMNS;
    int base = blockIdx.x * COLUMNS;
    #pragma unroll
    for (int d = 0; d < DEPTH; d++) FETCH(d, base, d)
    WAIT
    const Pack* rows = x;
    if (NORM) {
        Pack* own = (Pack*)memory;
        normalize(x, own, norm_weight, norm_bias, epsilon, parts[0][0][0]);
        __syncthreads();
        rows = own;
    }
    rows += lane / 4 * STRIDE;
    // Rows in global memory are read as early as the weights.
    Pack next[NORM ? 1 : DEPTH];
    #define ROWS_AT(step) (lane / 4 < M && first + (step) * 4 < PACKS \
        ? rows[first + (step) * 4] : zero)
    if (!NORM) {
        #pragma unroll
        for (int d = 0; d < DEPTH; d++) next[d] = ROWS_AT(d);
    }
    for (int turn = 0; base < N; base += stride, turn ^= 1) {
        float sums[1 + GATE][4] = {};
        for (int step = 0; step < STEPS; step += DEPTH) {
            #pragma unroll
            for (int d = 0; d < DEPTH; d++) {
                const Pack v = NORM ? ROWS_AT(step + d) : next[NORM ? 0 : d];
                #pragma unroll
                for (int s = 0; s < 1 + GATE; s++) multiply(sums[s], now[s][d], v);
                const bool is_end = step + DEPTH >= STEPS;
                const int after = is_end ? d : step + DEPTH + d;
                FETCH(d, is_end ? base + stride : base, after)
                if (!NORM) next[NORM ? 0 : d] = ROWS_AT(after);
            }
        }
        #pragma unroll
        for (int s = 0; s < 1 + GATE; s++)
            #pragma unroll
            for (int k = 0; k < 4; k++) {
                const int row = lane / 4 + k / 2 * 8;
                parts[turn][s][warp][row * 8 + lane % 4 * 2 + k % 2] = sums[s][k];
            }
        __syncthreads();
        for (int i = threadIdx.x; i < COLUMNS * M; i += 256) {
            const int number = i % COLUMNS, m = i / COLUMNS, column = base + number;
            if (column >= N) continue;
            float sum[1 + GATE] = {};
            #pragma unroll
            for (int s = 0; s < 1 + GATE; s++)
                #pragma unroll
                for (int w = 0; w < SPLIT; w++)
                    sum[s] += parts[turn][s][number / 16 * SPLIT + w]
                        [number % 16 * 8 + m];
            W v = sum[0];
            if (bias) v += (W)bias[column];
            if (GATE) v *= sum[GATE] / (1 + expf(-sum[GATE]));
            const W r = HAS_RESIDUAL ? (W)residual[(long long)m * N + column] : W(0);
            AFTER
            out[(long long)m * N + column] = (T)v;
        }
    }
}
"""


def splits_of(form: Form) -> tuple[int, ...]:
    """Return how many warps may share rows of weights; none if it is unsupported."""
    if form.dtype != np.float16 or form.inner % _CHUNK:
        return ()
    chunks = form.inner // _CHUNK
    return tuple(split for split in (8, 4) if chunks >= split)


@cache
def kernel(form: Form, split: int, blocks: int) -> RowKernel:
    """Return the kernel in which ``split`` warps share 16 rows of weights.

    A multiprocessor can have ``blocks`` blocks at the same time.
    """
    stride = form.packs + _PADDING
    shared = form.rows * stride * form.size * form.dtype.itemsize if form.norm else 0
    columns = columns_of(form, split)
    return compile_kernel(code(form, split, blocks), columns, shared)


def columns_of(form: Form, split: int) -> int:
    """Return how many results of a row a block computes at a time."""
    return WARPS // split * _TILE


def code(form: Form, split: int, blocks: int) -> str:
    """Return CUDA C of the kernel in which ``split`` warps share 16 rows of weights."""
    steps, most = -(-form.inner // (_CHUNK * split)), _DEPTH[blocks > 1]
    depth = max(number for number in range(1, most + 1) if steps % number == 0)
    if depth <= most // 2 < steps:
        depth, steps = most, -(-steps // most) * most
    numbers = {
        "STRIDE": form.packs + (_PADDING if form.norm else 0),
        "SPLIT": split,
        "STEPS": steps,
        "DEPTH": depth,
        "BLOCKS": blocks,
        "MOST_HELD": _HELD[blocks > 1],
    }
    return source(form, _SOURCE, numbers)
