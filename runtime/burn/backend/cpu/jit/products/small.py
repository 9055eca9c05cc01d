"""Products of small matrices as machine code."""

from functools import cache
from typing import Any

import numpy as np

from burn.backend.cpu.jit.functions import FLOATS, TYPES
from burn.backend.cpu.jit.native import FunctionWriter, kernel_of
from burn.backend.cpu.jit.source import Kernel
from burn.ops.support import Array

#: The most multiplications of a product: of more, BLAS takes less time.
MOST = 1 << 13


def matmul_kernel(x: Array, y: Array, target: Array) -> Kernel | None:
    """Return the kernel of ``np.matmul(x, y, out=target)``, None if it is NumPy's."""
    arrays = (x, y, target)
    if any(each.dtype != x.dtype for each in arrays) or x.dtype not in FLOATS:
        return None
    if min(x.ndim, y.ndim) < 2 or not all(a.flags.aligned for a in arrays):
        return None
    if not 0 < target.size * x.shape[-1] <= MOST or target.ndim > 4:
        return None
    batch = target.shape[:-2]
    x, y = (np.broadcast_to(a, (*batch, *a.shape[-2:])) for a in (x, y))
    columns = target.shape[-1]
    is_by_columns = columns >= 4 and y.strides[-1] == x.itemsize
    text = _source(x.dtype, len(batch), is_by_columns)
    numbers = [*batch, target.shape[-2], columns, x.shape[-1]]
    for each in (x, y, target):
        numbers += each.strides
    work = target.size * x.shape[-1] * 2
    return kernel_of(text, tuple(numbers), work, [x, y, target])


@cache
def _source(dtype: np.dtype[Any], rank: int, is_by_columns: bool) -> str:
    to = FunctionWriter()
    starts = [to.word("ptr") for _ in range(3)]
    extents = to.words(rank)
    rows, columns, depth = to.words(3)
    strides = [to.words(rank + 2) for _ in range(3)]
    if is_by_columns:  # known to be side by side, so that loads are vectors
        strides[1][-1] = str(dtype.itemsize)

    with to.nested(extents) as loops:
        x, y, target = (
            to.at(start, *zip(loops, own[:rank], strict=True))
            for start, own in zip(starts, strides, strict=True)
        )
        places = [(x, *strides[0][-2:]), (y, *strides[1][-2:])]
        whole = [*places, (target, *strides[2][-2:])]
        product = _by_columns if is_by_columns else _by_sums
        product(to, dtype, whole, (rows, columns, depth))
    return to.text()


def _by_sums(to: FunctionWriter, dtype: np.dtype[Any], places: Any, size: Any) -> None:
    """Emit a sum for each element of the result."""
    (x, x0, x1), (y, y0, y1), (target, t0, t1) = places
    rows, columns, depth = size
    sum_ = to.cell(dtype)
    with to.counting("0", rows) as i, to.counting("0", columns) as j:
        to.set(sum_, dtype, "0.0")
        with to.counting("0", depth) as k:
            a = to.load(dtype, to.at(x, (i, x0), (k, x1)))
            b = to.load(dtype, to.at(y, (k, y0), (j, y1)))
            product = to.do(f"fmul {TYPES[dtype]} {a}, {b}")
            to.accumulate("add", sum_, dtype, product)
        to.store(dtype, to.get(sum_, dtype), to.at(target, (i, t0), (j, t1)))


def _by_columns(
    to: FunctionWriter, dtype: np.dtype[Any], places: Any, size: Any
) -> None:
    """Emit sums of multiples of the rows of the second matrix."""
    (x, x0, x1), (y, y0, y1), (target, t0, t1) = places
    rows, columns, depth = size
    with to.counting("0", rows) as i:
        with to.counting("0", columns) as j:
            to.store(dtype, "0.0", to.at(target, (i, t0), (j, t1)))
        with to.counting("0", depth) as k:
            a = to.load(dtype, to.at(x, (i, x0), (k, x1)))
            with to.counting("0", columns) as j:
                b = to.load(dtype, to.at(y, (k, y0), (j, y1)))
                product = to.do(f"fmul {TYPES[dtype]} {a}, {b}")
                pointer = to.at(target, (i, t0), (j, t1))
                total = to.load(dtype, pointer)
                total = to.do(f"fadd {TYPES[dtype]} {total}, {product}")
                to.store(dtype, total, pointer)
