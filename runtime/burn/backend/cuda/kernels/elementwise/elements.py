"""Elementwise chains and copies as single generated kernels.

A thread computes 16 bytes of elements if they are contiguous in all operands. Extents
and strides are compile-time constants, so that index arithmetic is cheap.
"""

from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.elementwise.elementwise import memory_order
from burn.backend.cuda.kernels.elementwise.printing import (
    BFLOAT16,
    HEADER,
    STORED,
    VALUES,
    Printer,
    is_printed,
)
from burn.ops.elements import COPY, Element, Operand, elements as elements_op
from burn.ops.support import Array

_THREADS = 256
#: Indices are 32-bit numbers.
_MOST = 2**31 - 1
_SOURCE = """
template <class N> struct __align__(SIZE * sizeof(N)) Pack {{ N at[SIZE]; }};
extern "C" __global__ void __launch_bounds__({threads}) elements({parameters}) {{
    const unsigned i = blockIdx.x * {threads}u + threadIdx.x;
    if (i >= {count}u) return;
{indices}
{loads}
    Pack<R> out;
    #pragma unroll
    for (int k = 0; k < SIZE; k++) {{
{body}
    }}
    *(Pack<R>*)(y + i * SIZE) = out;
}}
"""


class Loop(NamedTuple):
    """The extents of a loop nest, and the strides of each operand.

    The result is dense. ``size`` elements of the last axis are computed at once.
    """

    extents: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]
    size: int


@elements_op.on(Cuda)
def elements(x: Array, *others: Array, element: Element) -> Array:
    """Compute :func:`burn.ops.elements.elements` in one kernel."""
    arrays = (x, *others)
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    if not 0 < prod(shape) <= _MOST or not is_printed(element):
        return elements_op.kernel(*arrays, element=element)
    order = _order(arrays, shape)
    return _compute(element, arrays, shape, order)


def dense(array: Array) -> Array:
    """Return ``array`` in row-major memory, copied if needed."""
    import cupy

    if array.flags.c_contiguous:
        return array
    if array.dtype not in STORED or not 0 < array.size <= _MOST:
        return cupy.ascontiguousarray(array)
    return copy_in_order(array, tuple(range(array.ndim)))


def copy_in_order(array: Array, order: tuple[int, ...]) -> Array:
    """Return a copy of ``array`` in this memory order."""
    dtype = array.dtype
    element = Element(COPY, (dtype,), dtype, (Operand(0, dtype),))
    return _compute(element, (array,), array.shape, order)


def _compute(
    element: Element, arrays: Any, shape: tuple[int, ...], order: tuple[int, ...]
) -> Array:
    """Return the result in memory order ``order``."""
    import cupy

    moved = [_broadcast(cupy, array, shape).transpose(order) for array in arrays]
    out = cupy.empty([shape[axis] for axis in order], element.dtype)
    loop = loop_of(out.shape, moved, element.dtype)
    kernel = _kernel(element, tuple(a.dtype for a in arrays), loop)
    count = out.size // loop.size
    kernel((-(-count // _THREADS),), (_THREADS,), (*moved, out))
    result: Array = out.transpose(np.argsort(order).tolist())
    return result


def _broadcast(cupy: Any, array: Array, shape: tuple[int, ...]) -> Array:
    return array if array.shape == shape else cupy.broadcast_to(array, shape)


def _order(arrays: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the memory order of the first dense operand of full shape."""
    for array in arrays:
        if array.shape == shape and not array.flags.c_contiguous:
            order = memory_order(shape, array.strides, array.itemsize)
            if order is not None:
                return order
    return tuple(range(len(shape)))


def loop_of(shape: tuple[int, ...], arrays: Any, dtype: Any) -> Loop:
    """Return the loop nest for a dense result, with as few axes as possible."""
    steps = [[s // a.itemsize for s in a.strides] for a in arrays]
    extents: list[int] = []
    strides: list[list[int]] = [[] for _ in steps]
    for axis, extent in enumerate(shape):
        if extent == 1:
            continue
        here = [step[axis] for step in steps]
        joins = bool(extents) and all(
            before[-1] == step * extent
            for before, step in zip(strides, here, strict=True)
        )
        if joins:
            extents[-1] *= extent
        else:
            extents.append(extent)
        for before, step in zip(strides, here, strict=True):
            before[-1:] = [step] if joins else [*before[-1:], step]
    if not extents:
        extents, strides = [1], [[0] for _ in steps]
    size = 16 // max(np.dtype(dtype).itemsize, *(a.dtype.itemsize for a in arrays))
    while size > 1 and not _is_packed(size, extents, strides, arrays):
        size //= 2
    return Loop(tuple(extents), tuple(map(tuple, strides)), size)


def _is_packed(size: int, extents: list[int], strides: Any, arrays: Any) -> bool:
    """Return whether ``size`` elements are contiguous and aligned in all operands."""
    if extents[-1] % size:
        return False
    for array, steps in zip(arrays, strides, strict=True):
        if steps[-1] == 0:
            continue
        if steps[-1] != 1 or any(step % size for step in steps[:-1]):
            return False
        if array.data.ptr % (size * array.itemsize):
            return False
    return True


@cache
def _kernel(element: Element, dtypes: tuple[Any, ...], loop: Loop) -> Any:
    import cupy

    return cupy.RawKernel(source(element, dtypes, loop), "elements")


def source(element: Element, dtypes: tuple[Any, ...], loop: Loop) -> str:
    """Return CUDA C of the kernel that computes ``element``."""
    size = loop.size
    kinds = [STORED[dtype] for dtype in dtypes]
    loads, values = [], []
    for number, kind in enumerate(kinds):
        at = _place(loop.strides[number], size)
        if loop.strides[number][-1] == 0 or size == 1:
            loads.append(f"    const {kind} p{number} = a{number}[{at}];")
            values.append(f"p{number}")
        else:
            pack = f"const Pack<{kind}>"
            loads.append(f"    {pack} p{number} = *({pack}*)(a{number} + {at});")
            values.append(f"p{number}.at[k]")
    body, result = statements(element, dtypes, values)
    out = STORED[element.dtype]
    parameters = [f"const {kind}* a{number}" for number, kind in enumerate(kinds)]
    code = (
        _SOURCE.format(
            threads=_THREADS,
            parameters=", ".join([*parameters, f"{out}* y"]),
            count=prod(loop.extents) // size,
            indices=_indices(loop),
            loads="\n".join(loads),
            body=f"{body}\n        out.at[k] = (R){result};",
        )
        .replace("SIZE", str(size))
        .replace("<R>", f"<{out}>")
        .replace("(R)", f"({out})")
    )
    return with_headers(code)


def statements(
    element: Element, dtypes: tuple[Any, ...], values: list[str]
) -> tuple[str, str]:
    """Return CUDA C that computes ``element`` of ``values``, and its result."""
    printer = Printer()
    result = printer.value(element, element.dtype)
    # Operands and result can be wider than the values between them.
    reads = [
        f"const {VALUES[dtype]} x{number} = ({VALUES[dtype]}){value};"
        for number, (dtype, value) in enumerate(zip(dtypes, values, strict=True))
    ]
    return "\n".join(f"        {line}" for line in [*reads, *printer.lines]), result


def with_headers(code: str) -> str:
    """Return ``code`` after the types and functions that it uses."""
    includes = "#include <cuda_fp16.h>\n" if "__half" in code else ""
    return includes + (BFLOAT16 if "bfloat16" in code else "") + HEADER + code


def _indices(loop: Loop) -> str:
    """Return the index of each axis; that of the last one counts packs."""
    lines, rest = [], "i"
    last = len(loop.extents) - 1
    for axis in range(last, -1, -1):
        extent = loop.extents[axis] // (loop.size if axis == last else 1)
        if axis == 0:
            lines.append(f"    const unsigned d0 = {rest};")
        else:
            lines.append(f"    const unsigned d{axis} = {rest} % {extent}u;")
            rest = f"{rest} / {extent}u"
    return "\n".join(lines)


def _place(strides: tuple[int, ...], size: int) -> str:
    """Return the offset of an operand's elements."""
    last = len(strides) - 1
    parts = [
        f"d{axis} * {step * (size if axis == last else 1)}LL"
        for axis, step in enumerate(strides)
        if step
    ]
    return " + ".join(parts) or "0"
