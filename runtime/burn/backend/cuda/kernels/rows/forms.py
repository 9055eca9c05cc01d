"""How kernels iterate over rows: in the registers of a warp, or of a block.

The source is CUDA C, compiled by NVRTC once for each length of rows, element type and
process; CuPy keeps the binaries on disk.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from burn.backend.cuda.kernels.elementwise.elements import dense
from burn.ops.layer_norm import feature_axes
from burn.ops.support import Array, Axes

#: The names in CUDA C of element types, and of the types of their sums.
TYPES = {
    np.dtype(np.float16): ("__half", "float"),
    np.dtype(np.float32): ("float", "float"),
    np.dtype(np.float64): ("double", "double"),
}
#: Helper functions and macros of the kernels.
_HELPERS = r"""
struct __align__(SIZE * sizeof(T)) Pack { T at[SIZE]; };
__device__ A join(A x, A y, bool is_sum) {
    return is_sum ? x + y : (x != x || x > y ? x : y);
}
// The sum or the maximum of `x` over the threads of a row, in all of them.
__device__ A over_row(A x, bool is_sum) {
    #pragma unroll
    for (int step = (THREADS < 32 ? THREADS : 32) / 2; step; step >>= 1)
        x = join(x, __shfl_xor_sync(0xffffffffu, x, step), is_sum);
    if (THREADS <= 32) return x;
    __shared__ A parts[32];
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[0];
    for (int i = 1; i < THREADS / 32; i++) x = join(x, parts[i], is_sum);
    return x;
}
// The numbers of a row that a thread has: PACKS times SIZE next to each other.
#define EACH for (int p = 0, i = threadIdx.x % THREADS; p < PACKS; p++, i += THREADS)
#define IS_IN (PACKS * THREADS == COUNT || i < COUNT)
__device__ void load(const Pack* from, A (&to)[PACKS][SIZE], A other) {
    Pack parts[PACKS];
    #pragma unroll
    EACH if (IS_IN) parts[p] = from[i];
    #pragma unroll
    EACH {
        #pragma unroll
        for (int k = 0; k < SIZE; k++) to[p][k] = IS_IN ? (A)parts[p].at[k] : other;
    }
}
// Threads after the last row compute the last one, since the rest of their warp waits
// for them, and write nothing.
#define ROW_OF_THREAD \
    const long long own = blockIdx.x * (long long)(BLOCK / THREADS) \
        + threadIdx.x / THREADS, row = own < rows ? own : rows - 1;
"""
#: Rows of one launch: the largest grid that CUDA has.
_MOST_ROWS = 2**31 - 1
#: The most elements of a thread, and the number of rows that fill a device.
MOST, _MANY = 32, 1024


def types(dtype: Any) -> str:
    element, wide = TYPES[dtype]
    header = "#include <cuda_fp16.h>\n" if dtype == np.float16 else ""
    return f"{header}typedef {element} T;\ntypedef {wide} A;\n"


class Form(NamedTuple):
    """The iteration of a kernel over rows of ``packs`` packs of ``size`` elements."""

    size: int
    packs: int
    threads: int
    block: int

    def source(self, dtype: Any, kernels: str) -> str:
        """Return CUDA C of ``kernels`` for rows of this form."""
        numbers = {
            "SIZE": self.size,
            "COUNT": self.packs,
            "THREADS": self.threads,
            "PACKS": -(-self.packs // self.threads),
            "BLOCK": self.block,
        }
        defines = "".join(f"#define {name} {n}\n" for name, n in numbers.items())
        return defines + types(dtype) + _HELPERS + kernels


def form_of(columns: int, rows: int, itemsize: int, alignment: int) -> Form | None:
    """Return the form of rows, None if they are too long for registers.

    ``alignment`` is that of all addresses, in bytes.
    """
    size = 16 // itemsize
    while size > 1 and (columns % size or alignment % (size * itemsize)):
        size //= 2
    count = columns // size
    threads = _lanes(count) if rows >= _MANY and count * size <= MOST * 32 else 32
    # Few rows: more threads for each, so that loads wait for each other less.
    most = MOST if rows >= _MANY else MOST // 2
    while threads < 1024 and -(-count // threads) * size > most:
        threads *= 2
    if -(-count // threads) * size > MOST:
        return None
    block = 128 if threads <= 32 and rows >= _MANY else threads
    return Form(size, count, threads, block)


def _lanes(count: int) -> int:
    """Return how many threads of a warp share a row of ``count`` packs.

    The largest power of two of which none idles, otherwise the first one that suffices.
    """
    if count > 1 and count % 2 == 0:
        return min(32, count & -count)
    return min(32, 1 << (count - 1).bit_length())


@cache
def form_kernel(name: str, kernels: str, dtype: Any, form: Form) -> Any:
    """Return the compiled kernel ``name`` of ``kernels`` for rows of ``form``."""
    import cupy

    return cupy.RawKernel(form.source(dtype, kernels), name)


def form_of_arrays(x: Array, columns: int, arrays: tuple[Any, ...]) -> Form | None:
    """Return the form of the rows of ``x`` and of further optional arrays."""
    alignment = 16
    for array in (x, *arrays):
        address = 0 if array is None else int(array.data.ptr)
        alignment = min(alignment, address & -address or 16)
    return form_of(columns, x.size // columns, x.itemsize, alignment)


def blocks_of(form: Form, rows: int) -> int:
    """Return the number of blocks that compute ``rows`` rows."""
    return -(-rows // (form.block // form.threads))


def rows_of(x: Array, columns: int) -> Array | None:
    """Return ``x`` row-major if these kernels support it, else None."""
    if x.dtype not in TYPES or not x.size or x.size // columns > _MOST_ROWS:
        return None
    return dense(x)


def features_of(x: Array, axis: Axes, *others: Array | None) -> tuple[int, ...] | None:
    """Return the extents of the last axes, over which a norm is computed.

    None if ``axis`` are other axes, or if an operand in ``others`` has other extents or
    another type.
    """
    axes = feature_axes(axis, x.ndim)
    if axes != tuple(range(x.ndim - len(axes), x.ndim)):
        return None
    features: tuple[int, ...] = x.shape[x.ndim - len(axes) :]
    for array in others:
        if array is not None and (array.shape != features or array.dtype != x.dtype):
            return None
    return features


def launch(
    name: str,
    kernels: str,
    form: Form,
    x: Array,
    columns: int,
    arrays: tuple[Any, ...],
    *rest: Any,
) -> None:
    """Launch ``name`` of ``kernels`` on the rows of ``x``; arrays may be None."""
    rows = x.size // columns
    parameters = [np.uint64(0) if array is None else array for array in arrays]
    kernel = form_kernel(name, kernels, x.dtype, form)
    arguments = (x, *parameters, np.int64(rows), *rest)
    kernel((blocks_of(form, rows),), (form.block,), arguments)
