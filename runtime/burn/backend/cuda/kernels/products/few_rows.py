"""Products of a few rows, limited by the memory bandwidth of the weights.

The norm before the product, a gate, and the epilogue are part of the kernel.
"""

from functools import cache, partial
from math import gcd, prod
from typing import Any

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.elementwise import epilogues
from burn.backend.cuda.kernels.elementwise.epilogues import TYPES, has_residual
from burn.backend.cuda.kernels.products.fused_products import linear_then
from burn.backend.cuda.kernels.products.products import linear
from burn.backend.cuda.launching import INSTRUCTIONS, launch
from burn.backend.cuda.libraries import is_capturing, packed
from burn.backend.cuda.tuning import quickest
from burn.ops.activation import silu
from burn.ops.decoding import Norm, row_linear as row_linear_op
from burn.ops.fused import After
from burn.ops.layer_norm import layer_norm, rms_norm
from burn.ops.support import Array

_THREADS, _WARPS = 256, 8
_PROCESSORS = "MultiProcessorCount"
#: Vectors of 16 bytes of a row of weights that a thread has in registers.
_LOADS = 4
#: Blocks of each processor, of which the quicker number is taken: with less than are
#: possible there is room for those of the next kernel. The most bytes of a block.
_BLOCKS, _SHARED = (2, 4), 96 << 10
#: The most rows of the kernel.
ROWS = 8
_SOURCE = r"""
__device__ float over_team(float v, float* parts) {
    #pragma unroll
    for (int step = 16; step; step >>= 1) v += __shfl_xor_sync(0xffffffffu, v, step);
    if (M > 1) return v;
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    #pragma unroll
    for (int i = 0; i < 8; i++) v += parts[i];
    return v;
}
__device__ void normalise(
    Pack* rows, const Pack* weight, const Pack* bias, float epsilon, float* parts
) {
    const int team = M > 1 ? 32 : 256, first = threadIdx.x % team;
    for (int m = threadIdx.x / team; m < M; m += 256 / team) {
        Pack* row = rows + m * PACKS;
        float mean = 0, squares = 0;
        if (NORM == 1) {
            for (int i = first; i < PACKS; i += team) {
                const Pack p = row[i];
                #pragma unroll
                for (int k = 0; k < SIZE; k++) mean += (float)p.at[k];
            }
            mean = over_team(mean, parts) / (PACKS * SIZE);
        }
        for (int i = first; i < PACKS; i += team) {
            const Pack p = row[i];
            #pragma unroll
            for (int k = 0; k < SIZE; k++) {
                const float v = (float)p.at[k] - mean;
                squares += v * v;
            }
        }
        squares = over_team(squares, parts) / (PACKS * SIZE);
        const float factor = 1 / sqrtf(squares + epsilon);
        for (int i = first; i < PACKS; i += team) {
            Pack p = row[i], w, b;
            if (weight) w = weight[i];
            if (bias) b = bias[i];
            #pragma unroll
            for (int k = 0; k < SIZE; k++) {
                float v = ((float)p.at[k] - mean) * factor;
                if (weight) v *= (float)w.at[k];
                if (bias) v += (float)b.at[k];
                p.at[k] = (T)v;
            }
            row[i] = p;
        }
    }
}
extern "C" __global__ void __launch_bounds__(256, M > 1 ? 2 : 4) row_linear(
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
        for (int i = threadIdx.x; i < M * PACKS; i += 256) own[i] = x[i];
        __syncthreads();
        normalise(own, norm_weight, norm_bias, epsilon, parts[0]);
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
#: Weights are read once: they need no place in the first cache.
_FETCHED = """
__device__ Pack fetched(const Pack* at) {
    const VECTOR v = __ldcs((const VECTOR*)at);
    return *(const Pack*)&v;
}
"""
_VECTORS = {16: "int4", 8: "int2", 4: "int", 2: "short"}


@row_linear_op.on(Cuda)
def row_linear(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    residual: Array | None = None,
    norm_weight: Array | None = None,
    norm_bias: Array | None = None,
    gate: Array | None = None,
    *,
    norm: Norm = "",
    epsilon: float = 1e-5,
    after: After = (),
) -> Array:
    """Compute :func:`burn.ops.decoding.row_linear` by one kernel, or by cuBLASLt.

    In plans the faster one is measured.
    """
    operands = (x, weight, bias, residual, norm_weight, norm_bias, gate)
    options: Any = {"norm": norm, "epsilon": epsilon, "after": after}
    if not _fits(operands, norm, after):
        return _by_parts(*operands, **options)
    if not is_capturing():
        return _by_kernel(*operands, **options)
    form = (
        *(x.shape, x.dtype, weight.shape, weight.strides, x.device.id),
        *(bias is None, gate is None, norm, after),
    )
    chosen = _CHOSEN.get(form)
    if chosen is None:
        chosen = _CHOSEN[form] = quickest(
            _variants(weight, gate is not None),
            lambda run: run(*operands, **options),
            x.device.id,
        )
    return chosen(*operands, **options)


def _variants(weight: Array, gated: bool) -> list[Any]:
    """Return the kernel with several launch configurations, and cuBLASLt."""
    columns, inner = weight.shape
    least = _split(inner // pack_size(inner, weight.dtype))
    variants: list[Any] = []
    for split in (n for n in (least, 2 * least, 4 * least) if n <= _WARPS):
        each = _WARPS // split * (1 if gated else 2)
        for blocks in _BLOCKS:
            variants.append(partial(_by_kernel, split=split, blocks=blocks))
            if columns <= each * blocks * weight.device.attributes[_PROCESSORS]:
                break  # there is nothing for more
    return [*variants, _by_parts]


#: The quicker one for each form of operands.
_CHOSEN: dict[Any, Any] = {}


def _fits(operands: tuple[Array | None, ...], norm: str, after: After) -> bool:
    """Return whether the kernel supports the operands."""
    x, weight, bias, residual, norm_weight, norm_bias, gate = operands
    assert x is not None and weight is not None
    rows, (columns, inner) = prod(x.shape[:-1]), weight.shape
    if x.dtype not in TYPES or not 0 < rows <= ROWS or x.shape[-1] != inner:
        return False
    split = _split(inner // pack_size(inner, x.dtype))
    if not split or (norm and rows * inner * x.itemsize > _SHARED):
        return False
    given = [array for array in operands if array is not None]
    if any(array.dtype != x.dtype for array in given):
        return False
    shape = (*x.shape[:-1], columns)
    if has_residual(after) and (residual is None or residual.shape != shape):
        return False
    return bias is None or bias.shape == (columns,)


def pack_size(inner: int, dtype: Any) -> int:
    """Return how many neighbouring elements of a row of weights are read at once."""
    return gcd(inner, TYPES[dtype][1])


def _split(packs: int) -> int:
    """Return how many warps share a row of so many vectors; 0 if too many."""
    for split in (1, 2, 4, 8):
        if packs <= split * 32 * _LOADS:
            return split
    return 0


def _by_kernel(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    residual: Array | None = None,
    norm_weight: Array | None = None,
    norm_bias: Array | None = None,
    gate: Array | None = None,
    *,
    norm: Norm = "",
    epsilon: float = 1e-5,
    after: After = (),
    split: int = 0,
    blocks: int = _BLOCKS[0],
) -> Array:
    import cupy

    rows, (columns, inner) = prod(x.shape[:-1]), weight.shape
    weight = packed(weight, "rows", cupy.ascontiguousarray)
    gate = None if gate is None else packed(gate, "rows", cupy.ascontiguousarray)
    arrays = [
        None if a is None else cupy.ascontiguousarray(a)
        for a in (x, weight, gate, bias, residual, norm_weight, norm_bias)
    ]
    if not has_residual(after):
        arrays[4] = None
    out = cupy.empty((*x.shape[:-1], columns), x.dtype)
    split = split or _split(inner // pack_size(inner, x.dtype))
    form = (x.dtype, rows, columns, inner, norm, gate is not None, after, split)
    kernel, each, shared = _kernel(*form)
    count = min(-(-columns // each), x.device.attributes[_PROCESSORS] * blocks)
    pointers = [np.uint64(0) if a is None else a for a in arrays]
    launch(
        *(kernel, (count,), _THREADS, (*pointers, out, np.float32(epsilon))),
        shared=shared,
    )
    return out


@cache
def _kernel(
    dtype: Any,
    rows: int,
    columns: int,
    inner: int,
    norm: str,
    gated: bool,
    after: After,
    split: int,
) -> tuple[Any, int, int]:
    """Return the kernel, the results per block, and the shared memory in bytes."""
    import cupy

    code = source(dtype, rows, columns, inner, norm, gated, after, split)
    kernel = cupy.RawKernel(code, "row_linear")
    shared = rows * inner * dtype.itemsize if norm else 0
    if shared > 48 << 10:
        kernel.max_dynamic_shared_size_bytes = shared
    return kernel, _WARPS // split * (1 if gated else 2), shared


def source(
    dtype: Any,
    rows: int,
    columns: int,
    inner: int,
    norm: str,
    gated: bool,
    after: After,
    split: int,
) -> str:
    """Return CUDA C of the kernel, in which ``split`` warps share a row of weights."""
    size = pack_size(inner, dtype)
    packs = inner // size
    numbers: dict[str, int | str] = {
        "M": rows,
        "N": columns,
        "PACKS": packs,
        "VECTOR": _VECTORS[size * dtype.itemsize],
        "SPLIT": split,
        "LOADS": -(-packs // (32 * split)),
        "ROWS": 1 if gated else 2,
        "GATE": int(gated),
        "NORM": ("", "layer", "rms").index(norm),
        "HAS_RESIDUAL": int(has_residual(after)),
    }
    defines = "".join(f"#define {name} {value}\n" for name, value in numbers.items())
    code = _SOURCE.replace("AFTER", epilogues.statements(after))
    return epilogues.header(dtype, size) + INSTRUCTIONS + defines + _FETCHED + code


def _by_parts(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    residual: Array | None = None,
    norm_weight: Array | None = None,
    norm_bias: Array | None = None,
    gate: Array | None = None,
    *,
    norm: Norm = "",
    epsilon: float = 1e-5,
    after: After = (),
) -> Array:
    """Return the result by separate norm, cuBLASLt product and epilogue."""
    on = Cuda(x.device.id)
    if norm == "layer":
        x = layer_norm.kernel_for(on)(x, norm_weight, norm_bias, epsilon=epsilon)
    elif norm == "rms":
        x = rms_norm.kernel_for(on)(x, norm_weight, epsilon=epsilon)
    if gate is not None:
        out = linear(x, weight, bias)
        out *= silu.kernel_for(on)(linear(x, gate))
        return out
    if after:
        return linear_then(x, weight, bias, residual, after=after)
    return linear(x, weight, bias)
