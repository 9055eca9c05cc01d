"""Distinct elements of small vectors as machine code."""

from functools import cache
from typing import Any

import numpy as np

from burn.backend.cpu.jit.functions import FLOATS, TYPES
from burn.backend.cpu.jit.native import INT32, INT64, FunctionWriter, kernel_of
from burn.backend.cpu.jit.source import Kernel
from burn.ops.support import Array

#: Each element is compared with all others: of more, sorting takes less time.
MOST = 128


def distinct_kernel(x: Array, targets: list[Array]) -> Kernel | None:
    """Return the kernel of the results of ``unique`` of all elements, in ascending
    order, None if it is NumPy's.

    It fails if there are more or fewer distinct elements than in ``targets``.
    """
    if x.dtype not in (*FLOATS, INT32, INT64) or not 0 < x.size <= MOST:
        return None
    arrays = (x, *targets)
    if not all(a.flags.c_contiguous and a.flags.aligned for a in arrays):
        return None
    scratch = np.empty(x.size, np.int64)
    numbers = (x.size, targets[0].size)
    work = 8 * x.size * x.size
    return kernel_of(_source(x.dtype), numbers, work, [*arrays, scratch])


@cache
def _source(dtype: np.dtype[Any]) -> str:
    to = FunctionWriter()
    x, values, first, inverse, counts, is_first = (to.word("ptr") for _ in range(6))
    size, most = to.words(2)
    limit = to.do(f"sub i64 {most}, 1")
    total = to.cell(INT64)
    to.set(total, INT64, "0")
    with to.counting("0", most) as index:
        to.store(INT64, "0", _integer(to, counts, index))
    with to.counting("0", size) as i:
        mine = _element(to, dtype, x, i)

        def repeats(j: str, mine: str = mine, i: str = i) -> str:
            is_before = to.do(f"icmp ult i64 {j}, {i}")
            is_equal = _are_equal(to, dtype, _element(to, dtype, x, j), mine)
            return to.do(f"and i1 {is_before}, {is_equal}")

        is_new = to.do(f"icmp eq i64 {_count(to, size, repeats)}, 0")
        new = to.do(f"zext i1 {is_new} to i64")
        to.store(INT64, new, _integer(to, is_first, i))
        to.set(total, INT64, to.do(f"add i64 {to.get(total, INT64)}, {new}"))
    with to.counting("0", size) as i:
        mine = _element(to, dtype, x, i)

        def precedes(j: str, mine: str = mine) -> str:
            flag = to.load(INT64, _integer(to, is_first, j))
            is_less = _is_less(to, dtype, _element(to, dtype, x, j), mine)
            return to.do(f"and i1 {is_less}, {to.do(f'icmp ne i64 {flag}, 0')}")

        rank = _count(to, size, precedes)
        bounded = to.do(f"call i64 @llvm.umin.i64(i64 {rank}, i64 {limit})")
        to.store(INT64, rank, _integer(to, inverse, i))
        count = to.load(INT64, _integer(to, counts, bounded))
        to.store(INT64, to.do(f"add i64 {count}, 1"), _integer(to, counts, bounded))
        # Equal elements are written to the position of the first of them.
        is_new = to.do(f"icmp eq i64 {count}, 0")
        previous = to.load(INT64, _integer(to, first, bounded))
        index = to.do(f"select i1 {is_new}, i64 {i}, i64 {previous}")
        to.store(INT64, index, _integer(to, first, bounded))
    _write_values(to, dtype, (x, first, values), (size, most))
    to.fail_if(to.do(f"icmp ne i64 {to.get(total, INT64)}, {most}"))
    return to.text()


def _write_values(
    to: FunctionWriter,
    dtype: np.dtype[Any],
    places: tuple[str, str, str],
    extents: tuple[str, str],
) -> None:
    """Emit the copies of the first of equal elements.

    If there are fewer than ``most``, some have no first place.
    """
    (x, first, values), (size, most) = places, extents
    last = to.do(f"sub i64 {size}, 1")
    with to.counting("0", most) as rank:
        index = to.load(INT64, _integer(to, first, rank))
        index = to.do(f"call i64 @llvm.umin.i64(i64 {index}, i64 {last})")
        target = to.at(values, (rank, str(dtype.itemsize)))
        to.store(dtype, _element(to, dtype, x, index), target)


def _count(to: FunctionWriter, size: str, condition: Any) -> str:
    """Return how many indices below ``size`` fulfil a condition."""
    count = to.cell(INT64)
    to.set(count, INT64, "0")
    with to.counting("0", size) as index:
        one = to.do(f"zext i1 {condition(index)} to i64")
        to.set(count, INT64, to.do(f"add i64 {to.get(count, INT64)}, {one}"))
    return to.get(count, INT64)


def _element(to: FunctionWriter, dtype: np.dtype[Any], start: str, index: str) -> str:
    return to.load(dtype, to.at(start, (index, str(dtype.itemsize))))


def _integer(to: FunctionWriter, start: str, index: str) -> str:
    """Return the pointer to an int64."""
    return to.at(start, (index, "8"))


def _are_equal(to: FunctionWriter, dtype: np.dtype[Any], a: str, b: str) -> str:
    """Return whether two elements are one; all NaN are."""
    kind = TYPES[dtype]
    if dtype not in FLOATS:
        return to.do(f"icmp eq {kind} {a}, {b}")
    are_equal = to.do(f"fcmp oeq {kind} {a}, {b}")
    is_nan, is_other = (to.do(f"fcmp uno {kind} {each}, {each}") for each in (a, b))
    return to.do(f"or i1 {are_equal}, {to.do(f'and i1 {is_nan}, {is_other}')}")


def _is_less(to: FunctionWriter, dtype: np.dtype[Any], a: str, b: str) -> str:
    """Return whether ``a`` comes before ``b``; NaN come last."""
    kind = TYPES[dtype]
    if dtype not in FLOATS:
        return to.do(f"icmp slt {kind} {a}, {b}")
    is_less = to.do(f"fcmp ult {kind} {a}, {b}")
    return to.do(f"and i1 {is_less}, {to.do(f'fcmp ord {kind} {a}, {a}')}")
