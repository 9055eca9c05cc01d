"""Attention on tensor cores that keeps no scores in memory, with masks of any kind.

A block of four warps computes 64 rows of a head. It goes over the keys in tiles with an
online softmax, as FlashAttention-2 (https://arxiv.org/abs/2307.08691) does. Products
are ``mma.sync`` instructions on float16, or on float32 rounded to TensorFloat-32.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from burn.backend.cuda.launching import INSTRUCTIONS, launch
from burn.ops.support import Array

_HALF, _FLOAT = np.dtype(np.float16), np.dtype(np.float32)
#: Rows of a warp, and the most elements of a head.
_ROWS, _MOST = 16, 128
_WARPS = 4
#: Bytes of a tile of keys that fit into shared memory beside the tile of values.
_TILE_BYTES = 64 * 256
_MASKS = {
    None: (0, "unsigned char"),
    np.dtype(np.bool_): (1, "unsigned char"),
    _FLOAT: (2, "float"),
    _HALF: (2, "__half"),
}
_HALF_PRODUCTS = r"""
#define DEPTH 16
#define PAD 8
typedef __half Shared;
__device__ void multiply(
    float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1
) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ Shared rounded(T x) { return x; }
// Two numbers next to each other as one register.
__device__ unsigned pair(float x, float y) {
    const __half2 both = __floats2half2_rn(x, y);
    return *(const unsigned*)&both;
}
__device__ unsigned pair_at(const T* x) {
    if (VECTORS) return *(const unsigned*)x;
    const __half2 both = __halves2half2(x[0], x[1]);
    return *(const unsigned*)&both;
}
__device__ void load_query(unsigned (&a)[4], const T* upper, const T* lower, int d) {
    const int at = d + 2 * (threadIdx.x % 4);
    a[0] = pair_at(upper + at), a[1] = pair_at(lower + at);
    a[2] = pair_at(upper + at + 8), a[3] = pair_at(lower + at + 8);
}
// Four matrices of 8 x 8 numbers, each row of which one thread of a warp names.
__device__ void load_matrices(unsigned (&b)[4], const Shared* row) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3]) : "r"(at));
}
__device__ void load_transposed(unsigned (&b)[4], const Shared* row) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3]) : "r"(at));
}
__device__ void scores_of(
    float (&s)[TILE / 8][4], const unsigned (&q)[SIZE / DEPTH][4],
    const Shared (&keys)[TILE][SIZE + PAD]
) {
    const int lane = threadIdx.x % 32;
    #pragma unroll
    for (int k = 0; k < SIZE / DEPTH; k++) {
        #pragma unroll
        for (int n = 0; n < TILE / 8; n += 2) {
            unsigned b[4];
            load_matrices(b, &keys[n * 8 + lane % 8 + lane / 16 * 8]
                [k * 16 + lane / 8 % 2 * 8]);
            multiply(s[n], q[k], b[0], b[1]);
            multiply(s[n + 1], q[k], b[2], b[3]);
        }
    }
}
__device__ void add_values(
    float (&out)[SIZE / 8][4], const float (&p)[TILE / 8][4],
    const Shared (&values)[TILE][SIZE + PAD]
) {
    const int lane = threadIdx.x % 32;
    #pragma unroll
    for (int k = 0; k < TILE / 16; k++) {
        const unsigned a[4] = {
            pair(p[2 * k][0], p[2 * k][1]), pair(p[2 * k][2], p[2 * k][3]),
            pair(p[2 * k + 1][0], p[2 * k + 1][1]),
            pair(p[2 * k + 1][2], p[2 * k + 1][3])};
        #pragma unroll
        for (int n = 0; n < SIZE / 8; n += 2) {
            unsigned b[4];
            load_transposed(b, &values[k * 16 + lane % 16][(n + lane / 16) * 8]);
            multiply(out[n], a, b[0], b[1]);
            multiply(out[n + 1], a, b[2], b[3]);
        }
    }
}
"""
_FLOAT_PRODUCTS = r"""
#define DEPTH 8
#define PAD 4
typedef unsigned Shared;
__device__ void multiply(
    float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1
) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ Shared rounded(float x) {
    unsigned result;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(result) : "f"(x));
    return result;
}
__device__ void load_query(unsigned (&a)[4], const T* upper, const T* lower, int d) {
    const int at = d + threadIdx.x % 4;
    a[0] = rounded(upper[at]), a[1] = rounded(lower[at]);
    a[2] = rounded(upper[at + 4]), a[3] = rounded(lower[at + 4]);
}
__device__ void scores_of(
    float (&s)[TILE / 8][4], const unsigned (&q)[SIZE / DEPTH][4],
    const Shared (&keys)[TILE][SIZE + PAD]
) {
    const int row = threadIdx.x % 32 / 4, column = threadIdx.x % 4;
    #pragma unroll
    for (int k = 0; k < SIZE / DEPTH; k++) {
        #pragma unroll
        for (int n = 0; n < TILE / 8; n++) {
            const Shared* at = &keys[n * 8 + row][k * 8 + column];
            multiply(s[n], q[k], at[0], at[4]);
        }
    }
}
// A thread has weights of two neighbouring keys, which the product takes as the keys
// `column` and `column + 4`: the order of the sum is any.
__device__ void add_values(
    float (&out)[SIZE / 8][4], const float (&p)[TILE / 8][4],
    const Shared (&values)[TILE][SIZE + PAD]
) {
    const int row = threadIdx.x % 32 / 4, column = threadIdx.x % 4;
    #pragma unroll
    for (int k = 0; k < TILE / 8; k++) {
        const unsigned a[4] = {
            rounded(p[k][0]), rounded(p[k][2]), rounded(p[k][1]), rounded(p[k][3])};
        #pragma unroll
        for (int n = 0; n < SIZE / 8; n++)
            multiply(out[n], a, values[k * 8 + 2 * column][n * 8 + row],
                values[k * 8 + 2 * column + 1][n * 8 + row]);
    }
}
"""
_SOURCE = r"""
#define NONE __int_as_float(0xff800000)
#define LOG2E 1.4426950408889634f
struct __align__(16) Pack { T at[16 / sizeof(T)]; };
struct __align__(16) SharedPack { Shared at[16 / sizeof(T)]; };
// Rows `first` to `first + TILE` of [rows, SIZE], zeros after the last one.
__device__ void load_tile(
    Shared (&to)[TILE][SIZE + PAD], const T* from, long long step, int first, int rows
) {
    const int each = VECTORS ? 16 / sizeof(T) : 1, count = SIZE / each;
    for (int i = threadIdx.x; i < TILE * count; i += blockDim.x) {
        const int row = i / count, d = i % count * each;
        const bool is_in = first + row < rows;
        const T* at = from + (first + row) * step + d;
        if (VECTORS) {
            Pack pack = {};
            if (is_in) pack = *(const Pack*)at;
            SharedPack out;
            #pragma unroll
            for (int k = 0; k < 16 / sizeof(T); k++) out.at[k] = rounded(pack.at[k]);
            *(SharedPack*)&to[row][d] = out;
        } else {
            to[row][d] = rounded(is_in ? *at : (T)0.0f);
        }
    }
}
// The maximum or the sum over the four threads that share a row.
__device__ float over_row(float x, bool is_sum) {
    #pragma unroll
    for (int step = 1; step < 4; step *= 2) {
        const float y = __shfl_xor_sync(0xffffffffu, x, step);
        x = is_sum ? x + y : fmaxf(x, y);
    }
    return x;
}
extern "C" __global__ void __launch_bounds__(32 * WARPS) tiled_attention(
    const T* query, long long query_batch, long long query_head, long long query_row,
    const T* key, long long key_batch, long long key_head, long long key_row,
    const T* value, long long value_batch, long long value_head, long long value_row,
    const M* mask, long long mask_batch, long long mask_head, long long mask_row,
    long long mask_column, T* out, long long out_batch, long long out_head,
    long long out_row, int heads, int group, int rows, int columns, float scale,
    int causal, int empty
) {
    __shared__ __align__(16) Shared keys[TILE][SIZE + PAD], values[TILE][SIZE + PAD];
    START_NEXT
    const int tiles = (rows + 16 * WARPS - 1) / (16 * WARPS);
    const int tile = blockIdx.x % tiles, head = blockIdx.x / tiles % heads;
    const long long batch = blockIdx.x / tiles / heads;
    const int lane = threadIdx.x % 32, column = 2 * (lane % 4);
    const int first = (tile * WARPS + threadIdx.x / 32) * 16 + lane / 4;
    const int row[2] = {first, first + 8};
    WAIT
    query += batch * query_batch + head * query_head;
    key += batch * key_batch + head / group * key_head;
    value += batch * value_batch + head / group * value_head;
    mask += batch * mask_batch + head * mask_head;
    out += batch * out_batch + head * out_head;
    unsigned q[SIZE / DEPTH][4];
    // Rows after the last one compute what the last one does, and write nothing.
    #pragma unroll
    for (int k = 0; k < SIZE / DEPTH; k++)
        load_query(q[k], query + min(row[0], rows - 1) * query_row,
            query + min(row[1], rows - 1) * query_row, k * DEPTH);
    float result[SIZE / 8][4] = {}, largest[2] = {NONE, NONE}, total[2] = {};
    const int end = causal ? min(columns, (tile + 1) * 16 * WARPS) : columns;
    for (int at = 0; at < end; at += TILE) {
        __syncthreads();
        load_tile(keys, key, key_row, at, columns);
        load_tile(values, value, value_row, at, columns);
        __syncthreads();
        float s[TILE / 8][4] = {};
        scores_of(s, q, keys);
        float most[2] = {NONE, NONE};
        #pragma unroll
        for (int n = 0; n < TILE / 8; n++) {
            #pragma unroll
            for (int i = 0; i < 4; i++) {
                const int c = at + n * 8 + column + i % 2;
                const int r = min(row[i / 2], rows - 1);
                float x = s[n][i] * scale;
                if (c >= columns || (causal && c > r)) x = NONE;
                else if (MASK == 1) {
                    if (!mask[r * mask_row + c * mask_column]) x = NONE;
                } else if (MASK == 2) x += (float)mask[r * mask_row + c * mask_column];
                s[n][i] = x;
                most[i / 2] = fmaxf(most[i / 2], x);
            }
        }
        float base[2];
        #pragma unroll
        for (int h = 0; h < 2; h++) {
            most[h] = fmaxf(largest[h], over_row(most[h], false));
            base[h] = most[h] == NONE ? 0 : most[h];
            const float factor = exp2f((largest[h] - base[h]) * LOG2E);
            largest[h] = most[h];
            total[h] *= factor;
            #pragma unroll
            for (int n = 0; n < SIZE / 8; n++)
                result[n][2 * h] *= factor, result[n][2 * h + 1] *= factor;
        }
        #pragma unroll
        for (int n = 0; n < TILE / 8; n++) {
            #pragma unroll
            for (int i = 0; i < 4; i++) {
                s[n][i] = exp2f((s[n][i] - base[i / 2]) * LOG2E);
                total[i / 2] += s[n][i];
            }
        }
        add_values(result, s, values);
    }
    #pragma unroll
    for (int h = 0; h < 2; h++) {
        float sum = over_row(total[h], true);
        if (empty && sum == 0) sum = 1;
        if (row[h] >= rows) continue;
        T* to = out + row[h] * out_row + column;
        #pragma unroll
        for (int n = 0; n < SIZE / 8; n++) {
            to[n * 8] = (T)(result[n][2 * h] / sum);
            to[n * 8 + 1] = (T)(result[n][2 * h + 1] / sum);
        }
    }
}
"""


class Form(NamedTuple):
    """What a kernel is compiled for.

    Attributes:
        dtype: of query, key, value and result: float16, or float32 read as
            TensorFloat-32.
        size: elements of a head, a multiple of 16 up to 128.
        warps: of a block, each for 16 rows.
        mask: dtype of the mask, None without one.
        is_aligned: whether rows of query, key and value start at multiples of 16 bytes.
    """

    dtype: np.dtype[Any]
    size: int
    warps: int
    mask: np.dtype[Any] | None
    is_aligned: bool

    def source(self) -> str:
        """CUDA C of the kernel."""
        kind, mask = _MASKS[self.mask]
        is_half = self.dtype == _HALF
        numbers = {
            "SIZE": self.size,
            "TILE": 64 if 64 * self.size * self.dtype.itemsize <= _TILE_BYTES else 32,
            "WARPS": self.warps,
            "MASK": kind,
            "VECTORS": int(self.is_aligned),
        }
        return (
            "#include <cuda_fp16.h>\n"
            + "".join(f"#define {name} {n}\n" for name, n in numbers.items())
            + f"typedef {'__half' if is_half else 'float'} T;\ntypedef {mask} M;\n"
            + INSTRUCTIONS
            + (_HALF_PRODUCTS if is_half else _FLOAT_PRODUCTS)
            + _SOURCE
        )


def is_tiled(query: Array, key: Array, value: Array, tf32: bool) -> bool:
    """Return whether the kernel takes operands [batch, heads, rows, size]."""
    size = query.shape[-1]
    if query.dtype != _HALF and not (query.dtype == _FLOAT and tf32):
        return False
    if key.dtype != query.dtype or value.dtype != query.dtype:
        return False
    if size % 16 or not 0 < size <= _MOST or value.shape[-1] != size:
        return False
    if key.shape[:3] != value.shape[:3] or key.shape[0] != query.shape[0]:
        return False
    return bool(query.shape[1] % key.shape[1] == 0)


def tiled_attention(
    operands: tuple[Array, Array, Array],
    mask: Array | None,
    out: Array,
    *,
    scale: float,
    causal: bool,
    empty_is_zero: bool,
) -> None:
    """Compute :func:`burn.ops.fused_attention.scaled_attention` into ``out``.

    Args:
        operands: query, key and value, for which :func:`is_tiled` holds.
        mask: bool, float16 or float32; it broadcasts to the scores.
        out: [batch, heads, rows, size] with elements of a row next to each other.
    """
    import cupy

    arrays = [
        x if x.strides[-1] == x.itemsize else cupy.ascontiguousarray(x)
        for x in operands
    ]
    query, key, _ = arrays
    batch, heads, rows, size = query.shape
    columns = key.shape[2]
    mask_args: tuple[Any, ...] = (np.uint64(0), *(np.int64(0),) * 4)
    if mask is not None:
        mask = cupy.broadcast_to(mask, (batch, heads, rows, columns))
        mask_args = (mask, *_steps(mask, 4))
    warps = min(_WARPS, -(-rows // _ROWS))
    kind = None if mask is None else mask.dtype
    form = Form(query.dtype, size, warps, kind, all(map(_is_aligned, arrays)))
    blocks = -(-rows // (_ROWS * warps)) * heads * batch
    numbers = (heads, heads // key.shape[1], rows, columns)
    args = (
        *(item for x in arrays for item in (x, *_steps(x, 3))),
        *(*mask_args, out, *_steps(out, 3), *map(np.int32, numbers)),
        *(np.float32(scale), np.int32(causal), np.int32(empty_is_zero)),
    )
    launch(_kernel(form), (blocks,), 32 * warps, args)


def _steps(array: Array, count: int) -> tuple[Any, ...]:
    """The elements between neighbours along the first ``count`` axes."""
    return tuple(np.int64(step // array.itemsize) for step in array.strides[:count])


def _is_aligned(array: Array) -> bool:
    addresses = (array.data.ptr, *array.strides[:-1])
    return all(address % 16 == 0 for address in addresses)


@cache
def _kernel(form: Form) -> Any:
    import cupy

    return cupy.RawKernel(form.source(), "tiled_attention")
