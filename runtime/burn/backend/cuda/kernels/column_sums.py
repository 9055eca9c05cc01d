"""Sums over the rows of a matrix: of batch norms, of gradients of biases and scales.

They take two kernels: blocks of 8 rows by 32 packs of columns add what they read in
float32, and one warp for each column adds these parts in float64.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.elementwise.printing import BFLOAT16, STORED
from burn.dtypes import bfloat16
from burn.ops.broadcast import broadcast_axes, sum_to as sum_to_op
from burn.ops.reduction import sum as sum_op
from burn.ops.support import Array, Axes, axes_of

#: Packs and rows of a block, and about how many blocks there are.
_ACROSS, _DOWN, _BLOCKS = 32, 8, 528
_MOST = 2**31 - 1
#: The least rows, columns and elements for which these kernels are faster than CuPy's.
_ROWS, _COLUMNS, _ELEMENTS = 32, 16, 1 << 14
FLOATS = tuple(map(np.dtype, (np.float16, bfloat16, np.float32)))
#: The numbers that are summed for an element ``v`` of ``x`` in row ``r`` and column
#: ``c``, as an expression of two variables ``a`` and ``b``; ``g`` is that of ``grad``.
_TERMS = {
    "sum": "a += v;",
    "squares": "const float d = v - mean[c]; a += d * d;",
    "products": "a += g; b += g * (v - mean[c]);",
    "row products": "a += g; b += g * ((v - mean[r]) * inverse[r]);",
}
#: What is written for the sum ``a``, and ``b`` of column ``c``.
_ENDS = {
    "sum": "out[c] = (O)(float)(a * factor);",
    "squares": """
        const float inverse = 1.0f / sqrtf((float)(a * factor) + epsilon);
        out[c] = (O)(float)(a * factor);
        out[(long long)columns + c] = (O)(inverse * (weight ? weight[c] : 1.0f));""",
    "products": """
        const float inverse = 1.0f / sqrtf(var[c] + epsilon);
        out[c] = (O)(float)(a * factor);
        out[(long long)columns + c] = (O)((float)(b * factor) * inverse * inverse);
        out[2LL * columns + c] = (O)(inverse * (weight ? weight[c] : 1.0f));
        out[3LL * columns + c] = (O)((float)b * inverse);
        out[4LL * columns + c] = (O)(float)a;""",
    "row products": "out[c] = (O)(float)a; out[(long long)columns + c] = (O)(float)b;",
}
#: The kinds that read ``grad``, and add two numbers for each element.
_PAIRS = ("products", "row products")
#: How many vectors each kind writes.
_OUTPUTS = {"sum": 1, "squares": 2, "products": 5, "row products": 2}
_SOURCE = r"""
struct __align__(SIZE * sizeof(T)) Pack { T at[SIZE]; };
struct __align__(SIZE * sizeof(G)) Other { G at[SIZE]; };
// parts[k][y][c]: the sums of block y over its rows.
extern "C" __global__ void __launch_bounds__(256) row_sums(
    const Pack* x, const Other* grad, const float* mean, const float* inverse,
    float* parts, int rows, int columns
) {
    __shared__ float shared[SUMS][SIZE][8][33];
    const int pack = blockIdx.x * 32 + threadIdx.x, packs = columns / SIZE;
    float first[SIZE], second[SIZE];
    #pragma unroll
    for (int k = 0; k < SIZE; k++) first[k] = second[k] = 0;
    if (pack < packs) {
        // Not signed: the last step can pass 2^31.
        const unsigned step = gridDim.y * 8;
        #pragma unroll 4
        for (unsigned r = blockIdx.y * 8 + threadIdx.y; r < rows; r += step) {
            const long long i = (long long)r * packs + pack;
            const Pack here = x[i];
            Other there;
            if (SUMS == 2) there = grad[i];
            #pragma unroll
            for (int k = 0; k < SIZE; k++) {
                const int c = pack * SIZE + k;
                const float v = (float)here.at[k];
                const float g = SUMS == 2 ? (float)there.at[k] : 0.0f;
                float& a = first[k];
                float& b = second[k];
                TERMS
            }
        }
    }
    #pragma unroll
    for (int k = 0; k < SIZE; k++) {
        shared[0][k][threadIdx.y][threadIdx.x] = first[k];
        if (SUMS == 2) shared[SUMS - 1][k][threadIdx.y][threadIdx.x] = second[k];
    }
    __syncthreads();
    if (threadIdx.y >= SUMS || pack >= packs) return;
    const int which = threadIdx.y;
    #pragma unroll
    for (int k = 0; k < SIZE; k++) {
        float a = 0;
        for (int i = 0; i < 8; i++) a += shared[which][k][i][threadIdx.x];
        parts[((long long)which * gridDim.y + blockIdx.y) * columns
            + pack * SIZE + k] = a;
    }
}
"""
_TOTAL = r"""
__device__ double total(const float* parts, int blocks, int columns) {
    double sum = 0;
    #pragma unroll 8
    for (int i = threadIdx.x; i < blocks; i += 32) sum += parts[(long long)i * columns];
    for (int step = 16; step; step >>= 1)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    return sum;
}
extern "C" __global__ void __launch_bounds__(256) add_parts(
    const float* parts, O* out, const float* var, const float* weight, int blocks,
    int columns, double factor, float epsilon
) {
    const int c = blockIdx.x * 8 + threadIdx.y;
    if (c >= columns) return;
    const double a = total(parts + c, blocks, columns);
    const double b = SUMS == 2
        ? total(parts + (long long)blocks * columns + c, blocks, columns) : 0;
    if (threadIdx.x) return;
    ENDS
}
"""


class Vectors(NamedTuple):
    """Vectors that :func:`column_sums` reads: of columns, or of rows."""

    mean: Any = None
    inverse: Any = None
    var: Any = None
    weight: Any = None


def column_sums(
    kind: str,
    x: Array,
    columns: int,
    grad: Any = None,
    vectors: Vectors | None = None,
    *,
    factor: float = 1.0,
    epsilon: float = 0.0,
    dtype: Any = np.float32,
) -> Array:
    """Return the vectors [outputs, columns] that sums over the rows of ``x`` give.

    ``x`` and ``grad`` are row-major matrices in memory, of types in :data:`FLOATS`, and
    ``vectors`` float32. The kinds are:

    - ``"sum"``: the sums times ``factor``
    - ``"squares"``: the sums of squares from ``mean`` times ``factor``, and ``weight``
      over the root of these plus ``epsilon``
    - ``"products"``: the results of :func:`burn.ops.batch_norm_parts.channel_gradients`
    - ``"row products"``: the sums of ``grad``, and of its products with
      ``(x - mean) * inverse``, which are vectors of rows
    """
    import cupy

    given = Vectors(*map(_or_none, vectors or Vectors()))
    parts = _partial_sums(kind, x, columns, grad, given)
    out = cupy.empty((_OUTPUTS[kind], columns), dtype)
    numbers = (np.int32(parts.shape[1]), np.int32(columns), np.float64(factor))
    _ending(kind, np.dtype(dtype))(
        (-(-columns // 8),),
        (32, 8),
        (parts, out, given.var, given.weight, *numbers, np.float32(epsilon)),
    )
    return out


def _partial_sums(
    kind: str, x: Array, columns: int, grad: Any, vectors: Vectors
) -> Array:
    """Return the sums [1 or 2, blocks, columns] that each block of rows has."""
    import cupy

    rows = x.size // columns
    size = _size(columns, x, grad)
    across = -(-columns // (size * _ACROSS))
    down = max(1, min(-(-rows // (4 * _DOWN)), _BLOCKS // across))
    parts = cupy.empty((2 if kind in _PAIRS else 1, down, columns), np.float32)
    other = x.dtype if grad is None else grad.dtype
    # Not made contiguous: images in memory are matrices with channels as columns.
    matrix = np.uintp(0) if grad is None else grad
    arguments = (x, matrix, vectors.mean, vectors.inverse, parts)
    _kernel(kind, x.dtype, other, size)(
        (across, down),
        (_ACROSS, _DOWN),
        (*arguments, np.int32(rows), np.int32(columns)),
    )
    return parts


def _or_none(array: Any) -> Any:
    """Return the kernel argument: a dense array, or a null pointer."""
    import cupy

    return np.uintp(0) if array is None else cupy.ascontiguousarray(array)


def _size(columns: int, x: Array, grad: Any) -> int:
    """Return how many columns a thread adds, such that no thread of a warp idles."""
    arrays = [x] if grad is None else [x, grad]
    size: int = 16 // max(array.itemsize for array in arrays)
    while size > 1:
        is_aligned = all(a.data.ptr % (size * a.itemsize) == 0 for a in arrays)
        if columns % (size * _ACROSS) == 0 and is_aligned:
            return size
        size //= 2
    return 1


@cache
def _kernel(kind: str, dtype: Any, other: Any, size: int) -> Any:
    import cupy

    return cupy.RawKernel(source(kind, dtype, other, size), "row_sums")


def source(kind: str, dtype: Any, other: Any, size: int) -> str:
    """Return CUDA C of the kernel of partial sums."""
    sums = 2 if kind in _PAIRS else 1
    names = f"typedef {STORED[dtype]} T;\ntypedef {STORED[other]} G;\n"
    code = _SOURCE.replace("TERMS", _TERMS[kind])
    return _types(dtype, other) + names + _defines(SIZE=size, SUMS=sums) + code


@cache
def _ending(kind: str, dtype: Any) -> Any:
    import cupy

    return cupy.RawKernel(ending_source(kind, dtype), "add_parts")


def ending_source(kind: str, dtype: Any) -> str:
    """Return CUDA C of the kernel that adds partial sums."""
    sums = 2 if kind in _PAIRS else 1
    names = f"typedef {STORED[dtype]} O;\n" + _defines(SUMS=sums)
    return _types(dtype) + names + _TOTAL.replace("ENDS", _ENDS[kind])


def _types(*dtypes: Any) -> str:
    include = "#include <cuda_fp16.h>\n" if np.dtype(np.float16) in dtypes else ""
    return include + (BFLOAT16 if np.dtype(bfloat16) in dtypes else "")


def _defines(**numbers: int) -> str:
    return "".join(f"#define {name} {value}\n" for name, value in numbers.items())


@sum_op.on(Cuda)
def sum_(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Compute :func:`burn.ops.sum`, over the rows of a matrix in two kernels."""
    axes = axes_of(axis, x.ndim)
    total = _over_rows(x, axes)
    if total is None:
        return sum_op.kernel(x, axis, keepdims=keepdims)
    kept = [1 if a in axes else n for a, n in enumerate(x.shape)]
    shape = kept if keepdims else [n for a, n in enumerate(x.shape) if a not in axes]
    return total.reshape(shape)


@sum_to_op.on(Cuda)
def sum_to(x: Array, *, shape: tuple[int, ...]) -> Array:
    """Compute :func:`burn.ops.sum_to`, over the rows of a matrix in two kernels."""
    total = _over_rows(x, broadcast_axes(shape, x.shape))
    if total is None:
        return sum_to_op.kernel(x, shape=shape)
    return total.reshape(shape)


def _over_rows(x: Array, axes: tuple[int, ...]) -> Array | None:
    """Return the sum over ``axes`` if these are the rows of a matrix in memory."""
    if x.dtype not in FLOATS or not _ELEMENTS <= x.size <= _MOST:
        return None
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    moved = x.transpose([*axes, *kept])
    columns = int(np.prod([x.shape[axis] for axis in kept], dtype=np.int64))
    is_wide = columns >= _COLUMNS and x.size >= _ROWS * columns
    if not axes or not is_wide or not moved.flags.c_contiguous:
        return None
    return column_sums("sum", x, columns, dtype=x.dtype)[0]
