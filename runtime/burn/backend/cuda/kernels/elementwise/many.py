"""One expression of each of many tensors, such as the update of all parameters.

A launch takes up to :data:`COUNT` tensors, whose addresses are arguments of the kernel:
a block looks up its tensor, and computes 4096 elements of it.
"""

from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.elementwise.elements import (
    elements,
    statements,
    with_headers,
)
from burn.backend.cuda.kernels.elementwise.elementwise import memory_order
from burn.backend.cuda.kernels.elementwise.printing import STORED, is_printed
from burn.ops.elements import Element, elements_of_many as elements_of_many_op
from burn.ops.support import Array

#: Tensors of a launch, and elements of a block, of a thread in one step, and of a
#: tensor.
COUNT, _PART, _SIZE, _MOST = 24, 4096, 4, 2**31 - 4096
_SOURCE = """
template <class N> struct __align__({size} * sizeof(N)) Pack {{ N at[{size}]; }};
extern "C" __global__ void __launch_bounds__(256) elements_of_many({parameters}) {{
{pointers}
    int block = blockIdx.x, count;
{lookup}
    const int end = min(count, (block + 1) * {part});
    #pragma unroll
    for (int i = block * {part} + threadIdx.x * {size}; i < end; i += 256 * {size}) {{
        if (i + {size} <= end) {{
{loads}
            Pack<R> out;
            #pragma unroll
            for (int k = 0; k < {size}; k++) {{
{packed}
                out.at[k] = (R){result};
            }}
            *(Pack<R>*)(y + i) = out;
        }} else {{
            for (int j = i; j < end; j++) {{
{single}
                y[j] = (R){result};
            }}
        }}
    }}
}}
"""


@elements_of_many_op.on(Cuda)
def elements_of_many(
    *operands: Array | list[Array], element: Element
) -> tuple[Array, ...]:
    """Compute :func:`burn.ops.elements.elements_of_many`, many tensors in a launch."""
    lists = [operand for operand in operands if isinstance(operand, list)]
    count = len(lists[0])
    rows = [tuple(values[n] for values in lists) for n in range(count)]
    outs: list[Any] = [None] * count
    joint = []
    for number, row in enumerate(rows):
        if is_printed(element) and _is_joint(row):
            joint.append(number)
            continue
        args = [o[number] if isinstance(o, list) else o for o in operands]
        outs[number] = elements(*args, element=element)
    for start in range(0, len(joint), COUNT):
        numbers = joint[start : start + COUNT]
        for number in numbers:
            outs[number] = _empty(rows[number][0], element.dtype)
        members = [(*rows[number], outs[number]) for number in numbers]
        _launch(element, operands, members)
    return tuple(outs)


def _is_joint(row: tuple[Array, ...]) -> bool:
    """Return whether operands are dense, aligned and in one memory order."""
    first = row[0]
    if not 0 < first.size <= _MOST:
        return False
    order = memory_order(first.shape, first.strides, first.itemsize)
    if order is None and not first.flags.c_contiguous:
        return False
    for array in row:
        size = array.itemsize
        steps = zip(array.strides, first.strides, array.shape, strict=True)
        same = all(e == 1 or a // size == b // first.itemsize for a, b, e in steps)
        if not same or array.data.ptr % (_SIZE * size):
            return False
    return True


def _empty(like: Array, dtype: Any) -> Array:
    import cupy

    out: Array = cupy.empty_like(like, dtype, order="K")
    return out


def _launch(element: Element, operands: tuple[Any, ...], members: list[Any]) -> None:
    """Compute the last array of each of ``members`` from the others."""
    shared = [o for o in operands if not isinstance(o, list)]
    kinds = tuple(
        (o[0].dtype, False) if isinstance(o, list) else (o.dtype, True)
        for o in operands
    )
    blocks = [-(-member[0].size // _PART) for member in members]
    arguments: list[Any] = [*shared]
    ends = list(accumulate(blocks))
    for place in range(COUNT):
        used = min(place, len(members) - 1)  # no block looks up the places after these
        count, end = members[used][0].size, ends[used]
        arguments += [*members[used], np.int32(count), np.int32(end)]
    _kernel(element, kinds)((ends[-1],), (256,), tuple(arguments))


@cache
def _kernel(element: Element, kinds: tuple[tuple[Any, bool], ...]) -> Any:
    import cupy

    return cupy.RawKernel(source(element, kinds), "elements_of_many")


def source(element: Element, kinds: tuple[tuple[Any, bool], ...]) -> str:
    """Return CUDA C for operands of these types; True marks a shared one."""
    dtypes = tuple(dtype for dtype, _ in kinds)
    names = [STORED[dtype] for dtype in dtypes]
    own = [n for n, (_, is_shared) in enumerate(kinds) if not is_shared]
    shared = [f"const {names[n]}* s{n}" for n in range(len(kinds)) if n not in own]
    pointers = [(f"const {names[n]}*", f"p{n}") for n in own]
    pointers.append((f"{STORED[element.dtype]}*", "y"))
    parameters, lookup = _lookup(pointers)
    pack = "            const Pack<{0}> q{1} = *(const Pack<{0}>*)(p{1} + i);"
    packs = [pack.format(names[n], n) for n in own]
    values = [f"p{n}[j]" if n in own else f"*s{n}" for n in range(len(kinds))]
    single, result = statements(element, dtypes, values)
    values = [f"q{n}.at[k]" if n in own else f"*s{n}" for n in range(len(kinds))]
    packed, _ = statements(element, dtypes, values)
    code = _SOURCE.format(
        size=_SIZE,
        part=_PART,
        result=result,
        packed=packed,
        single=single,
        loads="\n".join(packs),
        lookup=lookup,
        parameters=", ".join([*shared, *parameters]),
        pointers="\n".join(f"    {kind} {name};" for kind, name in pointers),
    )
    out = STORED[element.dtype]
    return with_headers(code.replace("<R>", f"<{out}>").replace("(R)", f"({out})"))


def _lookup(pointers: list[tuple[str, str]]) -> tuple[list[str], str]:
    """Return the parameters of each tensor, and how a block selects its own."""
    parameters, branches = list[str](), list[str]()
    for place in range(COUNT):
        parameters += [f"{kind} {name}_{place}" for kind, name in pointers]
        parameters += [f"int count_{place}", f"int end_{place}"]
        sets = "".join(f"{name} = {name}_{place}; " for _, name in pointers)
        before = f"block -= end_{place - 1}; " if place else ""
        test = "" if place == COUNT - 1 else f"if (block < end_{place}) "
        branches.append(f"{test}{{ {sets}count = count_{place}; {before}}}")
    return parameters, "    " + "\n    else ".join(branches)
