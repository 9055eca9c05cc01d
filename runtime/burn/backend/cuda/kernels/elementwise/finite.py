"""The check of many tensors for infinities and NaN, in a few launches."""

from functools import cache
from typing import Any

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.elementwise.elements import dense, with_headers
from burn.backend.cuda.kernels.elementwise.elementwise import memory_order
from burn.backend.cuda.kernels.elementwise.printing import STORED
from burn.dtypes import bfloat16
from burn.ops.logic import any_nonfinite as any_nonfinite_op
from burn.ops.support import Array

_FLOATS = tuple(map(np.dtype, (np.float16, bfloat16, np.float32, np.float64)))
#: Tensors of a launch, blocks for each of them, and the threads of a block.
COUNT, _BLOCKS, _THREADS = 24, 64, 256
_SOURCE = """
extern "C" __global__ void __launch_bounds__({threads}) any_nonfinite(
    bool* out, {parameters}
) {{
    const {type}* x;
    long long count;
    switch (blockIdx.y) {{
{cases}
        default: return;
    }}
    bool is_bad = false;
    for (long long i = blockIdx.x * (long long){threads} + threadIdx.x; i < count;
         i += gridDim.x * {threads}LL) {{
        const {wide} v = ({wide})x[i];
        is_bad = is_bad || v - v != 0;
    }}
    if (is_bad) *out = true;
}}
"""


@any_nonfinite_op.on(Cuda)
def any_nonfinite(arrays: list[Array]) -> Array:
    """Compute :func:`burn.ops.logic.any_nonfinite`."""
    if not all(array.dtype in _FLOATS for array in arrays):
        result: Array = any_nonfinite_op.kernel(arrays)
        return result
    import cupy

    out = cupy.zeros((), np.bool_)
    for dtype in _FLOATS:
        same = [_in_memory(a) for a in arrays if a.dtype == dtype and a.size]
        for start in range(0, len(same), COUNT):
            members = same[start : start + COUNT]
            most = max(array.size for array in members)
            blocks = min(_BLOCKS, -(-most // (4 * _THREADS)))
            arguments: list[Any] = [out]
            for array in members + members[-1:] * (COUNT - len(members)):
                arguments += [array, np.int64(array.size)]
            _kernel(dtype)((blocks, len(members)), (_THREADS,), tuple(arguments))
    return out


def _in_memory(array: Array) -> Array:
    """Return ``array``, or a copy if its elements are not next to each other."""
    if memory_order(array.shape, array.strides, array.itemsize) is not None:
        return array
    return dense(array)


@cache
def _kernel(dtype: Any) -> Any:
    import cupy

    return cupy.RawKernel(source(dtype), "any_nonfinite")


def source(dtype: Any) -> str:
    """Return CUDA C for tensors of ``dtype``."""
    name = STORED[dtype]
    places = range(COUNT)
    cases = [f"        case {n}: x = x{n}; count = n{n}; break;" for n in places]
    return with_headers(
        _SOURCE.format(
            threads=_THREADS,
            type=name,
            wide="double" if name == "double" else "float",
            parameters=", ".join(f"const {name}* x{n}, long long n{n}" for n in places),
            cases="\n".join(cases),
        )
    )
