"""Attention on tensor cores that keeps no scores in memory, with masks of any kind.

A block of four warps computes 64 rows of a head. It goes over the keys in tiles with an
online softmax, as FlashAttention-2 (https://arxiv.org/abs/2307.08691) does. Products
are ``mma.sync`` instructions on float16, or on float32 rounded to TensorFloat-32.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from burn.backend.cuda.dependent_launch import INSTRUCTIONS, launch
from burn.backend.cuda.kernels.attention.warp_products import (
    FLOAT_PRODUCTS,
    HALF_PRODUCTS,
)
from burn.ops.support import Array

_HALF, _FLOAT = np.dtype(np.float16), np.dtype(np.float32)
#: Rows of a warp, and the most elements of a head.
_ROWS, _MOST = 16, 128
_WARPS = 4
#: The smallest scale of scores by which addends are divided.
_LEAST = 1e-6
#: Bytes of a key for which a tile has 64 keys; of larger ones it has 32. Blocks of
#: float32 are compiled for three on a multiprocessor. Both were measured: ViT-B/16 in
#: TensorFloat-32 takes 18.5 microseconds a layer, with tiles of 64 keys 23.1.
_KEY_BYTES, _FLOAT_BLOCKS = 128, 3
_MASKS = {
    None: (0, "unsigned char"),
    np.dtype(np.bool_): (1, "unsigned char"),
    _FLOAT: (2, "float"),
    _HALF: (2, "__half"),
}
_SOURCE = r"""
#define NONE __int_as_float(0xff800000)
#define LOG2E 1.4426950408889634f
struct __align__(2 * sizeof(T)) Pair { T first, second; };
struct __align__(16) Pack { T at[16 / sizeof(T)]; };
struct __align__(16) SharedPack { Shared at[16 / sizeof(T)]; };
// Rows `first` to `first + TILE` of [rows, SIZE], zeros after the last one. All loads
// are on their way before the first number is stored.
__device__ void load_tile(
    Shared (&to)[TILE][SIZE + PAD], const T* from, long long step, int first, int rows
) {
    const int each = VECTORS ? 16 / sizeof(T) : 1, count = SIZE / each;
    const int packs = TILE * count, turns = (packs + 32 * WARPS - 1) / (32 * WARPS);
    if (VECTORS) {
        Pack parts[turns];
        #pragma unroll
        for (int turn = 0; turn < turns; turn++) {
            const int i = turn * 32 * WARPS + threadIdx.x, row = first + i / count;
            parts[turn] = {};
            if (i < packs && row < rows)
                parts[turn] = *(const Pack*)(from + row * step + i % count * each);
        }
        #pragma unroll
        for (int turn = 0; turn < turns; turn++) {
            const int i = turn * 32 * WARPS + threadIdx.x;
            SharedPack out;
            #pragma unroll
            for (int k = 0; k < 16 / sizeof(T); k++)
                out.at[k] = rounded(parts[turn].at[k]);
            if (i < packs) *(SharedPack*)&to[i / count][i % count * each] = out;
        }
    } else {
        for (int i = threadIdx.x; i < packs; i += 32 * WARPS) {
            const int row = first + i / SIZE, d = i % SIZE;
            to[i / SIZE][d] = rounded(row < rows ? from[row * step + d] : (T)0.0f);
        }
    }
}
__device__ float power_of_2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
// Scores start as what the mask adds to them: loads of it do not wait for the keys.
// Finite addends stay finite when they are multiplied, at most by `limit`: a row whose
// keys all have the lowest number sees all of them.
__device__ void load_mask(
    float (&s)[TILE / 8][4], const M* mask, const int (&row)[2], long long mask_row,
    long long mask_column, int first, int columns, float factor, float limit
) {
    M added[2][TILE / 4];  // all loads are on their way before the first is used
    #pragma unroll
    for (int h = 0; h < 2; h++) {
        const M* line = mask + row[h] * mask_row;
        #pragma unroll
        for (int i = 0; i < TILE / 4; i++)
            added[h][i] = line[min(first + i / 2 * 8 + i % 2, columns - 1) * MASK_STEP];
    }
    #pragma unroll
    for (int h = 0; h < 2; h++) {
        #pragma unroll
        for (int i = 0; i < TILE / 4; i++) {
            float x = 0;
            if (MASK == 1) x = added[h][i] ? 0 : NONE;
            else {
                const float y = added[h][i];
                x = y * factor;
                x = fabsf(x) > limit && !isinf(y) ? copysignf(limit, x) : x;
            }
            s[i / 2][2 * h + i % 2] = x;
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
extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) tiled_attention(
    const T* query, long long query_batch, long long query_head, long long query_row,
    const T* key, long long key_batch, long long key_head, long long key_row,
    const T* value, long long value_batch, long long value_head, long long value_row,
    const M* mask, long long mask_batch, long long mask_head, long long mask_row,
    long long mask_column, T* out, long long out_batch, long long out_head,
    long long out_row, int heads, int group, int rows, int columns, float scale,
    int empty
) {
    __shared__ __align__(16) Shared keys[TILE][SIZE + PAD], values[TILE][SIZE + PAD];
    START_NEXT
    const int tiles = (rows + 16 * WARPS - 1) / (16 * WARPS);
    const int tile = blockIdx.x % tiles, head = blockIdx.x / tiles % heads;
    const long long batch = blockIdx.x / tiles / heads;
    const int lane = threadIdx.x % 32, column = 2 * (lane % 4);
    const int first = (tile * WARPS + threadIdx.x / 32) * 16 + lane / 4;
    const int row[2] = {min(first, rows - 1), min(first + 8, rows - 1)};
    WAIT
    query += batch * query_batch + head * query_head;
    key += batch * key_batch + head / group * key_head;
    value += batch * value_batch + head / group * value_head;
    mask += batch * mask_batch + head * mask_head;
    out += batch * out_batch + head * out_head;
    unsigned q[SIZE / DEPTH][4];
    // Rows after the last one repeat the last one, and write nothing.
    #pragma unroll
    for (int k = 0; k < SIZE / DEPTH; k++)
        load_query(q[k], query + row[0] * query_row, query + row[1] * query_row,
            k * DEPTH);
    // Scores and their maxima are logarithms to base 2.
    const float factor = scale * LOG2E, inverse = 1 / scale;
    const float limit = 3.4028235e38f / fmaxf(1, factor);
    float result[SIZE / 8][4] = {}, largest[2] = {NONE, NONE}, total[2] = {};
    const int end = CAUSAL ? min(columns, (tile + 1) * 16 * WARPS) : columns;
    for (int at = 0; at < end; at += TILE) {
        float s[TILE / 8][4] = {};
        if (MASK)
            load_mask(s, mask, row, mask_row, mask_column, at + column, columns,
                inverse, limit);
        __syncthreads();
        load_tile(keys, key, key_row, at, columns);
        load_tile(values, value, value_row, at, columns);
        __syncthreads();
        scores_of(s, q, keys);
        if (at + TILE > columns || (CAUSAL && at + TILE > tile * 16 * WARPS)) {
            #pragma unroll
            for (int n = 0; n < TILE / 8; n++) {
                #pragma unroll
                for (int i = 0; i < 4; i++) {
                    const int c = at + n * 8 + column + i % 2;
                    if (c >= columns || (CAUSAL && c > row[i / 2])) s[n][i] = NONE;
                }
            }
        }
        #pragma unroll
        for (int h = 0; h < 2; h++) {
            float most = NONE;
            #pragma unroll
            for (int n = 0; n < TILE / 8; n++) {
                s[n][2 * h] *= factor, s[n][2 * h + 1] *= factor;
                most = fmaxf(most, fmaxf(s[n][2 * h], s[n][2 * h + 1]));
            }
            most = fmaxf(largest[h], over_row(most, false));
            const float base = most == NONE ? 0 : most;
            const float change = power_of_2(largest[h] - base);
            largest[h] = most;
            total[h] *= change;
            #pragma unroll
            for (int n = 0; n < SIZE / 8; n++)
                result[n][2 * h] *= change, result[n][2 * h + 1] *= change;
            #pragma unroll
            for (int n = 0; n < TILE / 8; n++) {
                #pragma unroll
                for (int i = 2 * h; i < 2 * h + 2; i++) {
                    s[n][i] = power_of_2(s[n][i] - base);
                    total[h] += s[n][i];
                }
            }
        }
        add_values(result, s, values);
    }
    #pragma unroll
    for (int h = 0; h < 2; h++) {
        float sum = over_row(total[h], true);
        if (empty && sum == 0) sum = 1;
        if (first + 8 * h >= rows) continue;
        Pair* to = (Pair*)(out + row[h] * out_row + column);
        #pragma unroll
        for (int n = 0; n < SIZE / 8; n++) {
            const Pair both = {
                (T)(result[n][2 * h] / sum), (T)(result[n][2 * h + 1] / sum)};
            to[n * 4] = both;
        }
    }
}
"""


class Form(NamedTuple):
    """The constants that a kernel is compiled with.

    Attributes:
        dtype: of query, key, value and result: float16, or float32 read as
            TensorFloat-32.
        size: elements of a head, a multiple of 16 up to 128.
        warps: of a block, each for 16 rows.
        mask: dtype of the mask, None without one.
        is_dense: whether neighboring columns of the mask are neighbors in memory.
        is_causal: whether a row sees no key after its own.
        is_aligned: whether rows of query, key and value start at multiples of 16 bytes.
    """

    dtype: np.dtype[Any]
    size: int
    warps: int
    mask: np.dtype[Any] | None
    is_dense: bool
    is_causal: bool
    is_aligned: bool

    def source(self) -> str:
        """CUDA C of the kernel."""
        kind, mask = _MASKS[self.mask]
        is_half = self.dtype == _HALF
        numbers = {
            "SIZE": self.size,
            "TILE": 64 if self.size * self.dtype.itemsize <= _KEY_BYTES else 32,
            "BLOCKS": 1 if is_half else _FLOAT_BLOCKS,
            "WARPS": self.warps,
            "MASK": kind,
            "MASK_STEP": 1 if self.is_dense else "mask_column",
            "CAUSAL": int(self.is_causal),
            "VECTORS": int(self.is_aligned),
        }
        return (
            "#include <cuda_fp16.h>\n"
            + "".join(f"#define {name} {n}\n" for name, n in numbers.items())
            + f"typedef {'__half' if is_half else 'float'} T;\ntypedef {mask} M;\n"
            + INSTRUCTIONS
            + (HALF_PRODUCTS if is_half else FLOAT_PRODUCTS)
            + _SOURCE
        )


def is_tiled(query: Array, key: Array, value: Array, scale: float, tf32: bool) -> bool:
    """Return whether the kernel takes operands [batch, heads, rows, size]."""
    size = query.shape[-1]
    if not _LEAST <= scale <= 1 / _LEAST:
        return False
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
    is_dense, is_aligned = int(mask_args[-1]) == 1, all(map(_is_aligned, arrays))
    form = Form(query.dtype, size, warps, kind, is_dense, causal, is_aligned)
    blocks = -(-rows // (_ROWS * warps)) * heads * batch
    numbers = (heads, heads // key.shape[1], rows, columns)
    args = (
        *(item for x in arrays for item in (x, *_steps(x, 3))),
        *(*mask_args, out, *_steps(out, 3), *map(np.int32, numbers)),
        *(np.float32(scale), np.int32(empty_is_zero)),
    )
    launch(_kernel(form), (blocks,), 32 * warps, args)


def _steps(array: Array, count: int) -> tuple[Any, ...]:
    """The elements between neighbors along the first ``count`` axes."""
    return tuple(np.int64(step // array.itemsize) for step in array.strides[:count])


def _is_aligned(array: Array) -> bool:
    addresses = (array.data.ptr, *array.strides[:-1])
    return all(address % 16 == 0 for address in addresses)


@cache
def _kernel(form: Form) -> Any:
    import cupy

    return cupy.RawKernel(form.source(), "tiled_attention")
