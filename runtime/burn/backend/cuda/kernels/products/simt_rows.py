"""Products of a few rows by the CUDA cores, a row of weights for one or more warps."""

from functools import cache

from burn.backend.cuda.kernels.products.row_kernels import (
    WARPS,
    Form,
    RowKernel,
    compile_kernel,
    source,
)

#: Vectors of 16 bytes of a row of weights that a thread has in registers.
_LOADS = 4
#: The most vectors of ``x`` that a thread has in registers for the norm, for one row
#: and for more.
_HELD = (1, 4)
_SOURCE = r"""
extern "C" __global__ void __launch_bounds__(256, BLOCKS) row_linear(
    const Pack* x, const Pack* weight, const Pack* gate, const T* bias,
    const T* residual, const Pack* norm_weight, const Pack* norm_bias, T* out,
    float epsilon
) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ float parts[2][8 * 2 * M];
    START_NEXT
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int part = warp % SPLIT, set = warp / SPLIT;
    const int each = (8 / SPLIT) * ROWS;  // rows of weights of a block at a time
    const Pack zero = {};
    Pack now[2][LOADS];
    const Pack* streams[2];
    #define FETCH(into, base) { \
        const int row = (base) + set * ROWS; \
        streams[0] = weight + (long long)row * PACKS; \
        streams[1] = GATE ? gate + (long long)row * PACKS : streams[0] + PACKS; \
        _Pragma("unroll") \
        for (int s = 0; s < 2; s++) { \
            const bool is_there = row + (GATE ? 0 : s) < N; \
            _Pragma("unroll") \
            for (int l = 0; l < LOADS; l++) { \
                const int at = (l * SPLIT + part) * 32 + lane; \
                into[s][l] = is_there && at < PACKS ? fetched(streams[s] + at) : zero; \
            } \
        } \
    }
    int base = blockIdx.x * each;
    FETCH(now, base)
    WAIT
    const Pack* rows = x;
    if (NORM) {
        Pack* own = (Pack*)memory;
        normalize(x, own, norm_weight, norm_bias, epsilon, parts[0]);
        __syncthreads();
        rows = own;
    }
    for (int turn = 0; base < N; base += gridDim.x * each, turn ^= 1) {
        float sums[2][M];
        #pragma unroll
        for (int s = 0; s < 2; s++)
            #pragma unroll
            for (int m = 0; m < M; m++) sums[s][m] = 0;
        #pragma unroll
        for (int l = 0; l < LOADS; l++) {
            const int at = (l * SPLIT + part) * 32 + lane;
            if (at < PACKS) {
                #pragma unroll
                for (int m = 0; m < M; m++) {
                    const Pack p = rows[m * PACKS + at];
                    #pragma unroll
                    for (int k = 0; k < SIZE; k++) {
                        const float v = (float)p.at[k];
                        sums[0][m] = fmaf((float)now[0][l].at[k], v, sums[0][m]);
                        sums[1][m] = fmaf((float)now[1][l].at[k], v, sums[1][m]);
                    }
                }
            }
        }
        if (base + gridDim.x * each < N) FETCH(now, base + gridDim.x * each)
        #pragma unroll
        for (int s = 0; s < 2; s++)
            #pragma unroll
            for (int m = 0; m < M; m++)
                #pragma unroll
                for (int step = 16; step; step >>= 1)
                    sums[s][m] += __shfl_xor_sync(0xffffffffu, sums[s][m], step);
        if (lane == 0) {
            #pragma unroll
            for (int s = 0; s < 2; s++)
                #pragma unroll
                for (int m = 0; m < M; m++)
                    parts[turn][(warp * 2 + s) * M + m] = sums[s][m];
        }
        __syncthreads();
        const int number = threadIdx.x / M, m = threadIdx.x % M;
        const int column = base + number;
        if (number < each && column < N) {
            float first = 0, second = 0;
            #pragma unroll
            for (int i = 0; i < SPLIT; i++) {
                const int w = number / ROWS * SPLIT + i, s = number % ROWS;
                first += parts[turn][(w * 2 + s) * M + m];
                if (GATE) second += parts[turn][(w * 2 + 1) * M + m];
            }
            W v = first;
            if (bias) v += (W)bias[column];
            if (GATE) v *= second / (1 + expf(-second));
            const W r = HAS_RESIDUAL ? (W)residual[(long long)m * N + column] : W(0);
            AFTER
            out[(long long)m * N + column] = (T)v;
        }
    }
}
"""


def warps_of(form: Form) -> int:
    """Return the fewest warps that can share a row of weights; 0 if too many."""
    for warps in (1, 2, 4, 8):
        if form.packs <= warps * 32 * _LOADS:
            return warps
    return 0


@cache
def kernel(form: Form, split: int, blocks: int) -> RowKernel:
    """Return the kernel in which ``split`` warps share a row of weights.

    A multiprocessor can have ``blocks`` blocks at the same time.
    """
    shared = form.rows * form.inner * form.dtype.itemsize if form.norm else 0
    columns = columns_of(form, split)
    return compile_kernel(code(form, split, blocks), columns, shared)


def columns_of(form: Form, split: int) -> int:
    """Return how many results of a row a block computes at a time."""
    return WARPS // split * (1 if form.gated else 2)


def code(form: Form, split: int, blocks: int) -> str:
    """Return CUDA C of the kernel in which ``split`` warps share a row of weights."""
    numbers = {
        "STRIDE": form.packs,
        "SPLIT": split,
        "LOADS": -(-form.packs // (32 * split)),
        "ROWS": 1 if form.gated else 2,
        "BLOCKS": blocks,
        "MOST_HELD": _HELD[form.rows > 1],
    }
    return source(form, _SOURCE, numbers)
