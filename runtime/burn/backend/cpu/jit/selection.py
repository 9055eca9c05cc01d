"""Selection of the generated kernels that are worth their compilation."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby
from math import prod
from typing import NamedTuple

from burn.backend.cpu.jit.calls import KernelCall, Operations
from burn.backend.cpu.jit.functions import cost_of
from burn.backend.cpu.jit.source import Kernel

#: Kernels must save so many nanoseconds in each run together: loading LLVM takes
#: 100 ms, which is 80 000 runs.
LEAST_TOGETHER = 1_250
#: A kernel must save so many nanoseconds in each run: it takes about 25 ms to compile,
#: which is 50 000 runs.
LEAST_SAVED = 500
#: The maximum number of kernels of a sequence of calls: their compilation takes 1.6 s.
MOST_KERNELS = 64
#: A kernel of less work (in additions) is done by one thread.
SHARED = 400_000
# Of more work (in additions) one reduction of NumPy's takes no longer than a kernel,
# and its sums are more exact.
_LITTLE = 1 << 13
#: Nanoseconds of a call of NumPy, and of a generated kernel, without elements.
_NUMPY_CALL, _KERNEL_CALL = 550, 450
#: Nanoseconds of an addition of two elements by NumPy, and of a unit of a kernel's
#: work: NumPy reads and writes memory for each function.
_NUMPY_ELEMENT, _KERNEL_ELEMENT = 0.25, 0.05


class Candidate(NamedTuple):
    """A kernel for calls from ``start`` to ``end``, with the nanoseconds it saves."""

    start: int
    end: int
    kernel: Kernel
    saved: float


def can_pay(times: Iterable[float | None]) -> bool:
    """Return whether kernels may save enough, without writing them.

    ``times`` are the nanoseconds of each call that machine code can make, None for the
    others. Consecutive ones become a single call.
    """
    most = 0.0
    for is_native, run in groupby(times, lambda each: each is not None):
        if is_native:
            each = [time or 0.0 for time in run]
            calls = sum(_KERNEL_CALL for time in each if not time)
            most += sum(each) + calls - _KERNEL_CALL
    return most >= LEAST_TOGETHER


def saved_time(time: float, kernel: Kernel) -> float:
    """Return an estimate of the nanoseconds that ``kernel`` saves in each run.

    ``time`` is that of the replaced calls.
    """
    return time - (_KERNEL_CALL + _KERNEL_ELEMENT * kernel.work)


def beside_others(candidates: list[Candidate], native: list[bool]) -> list[Candidate]:
    """Return the candidates with their savings if consecutive ones are one call.

    ``native`` marks the calls that are machine code anyway. A kernel between two others
    joins both calls to one. A single function without neighbors, or a reduction of many
    elements, only gains by multithreading and is left out.
    """
    are_native = list(native)
    for each in candidates:
        are_native[each.start : each.end] = [True] * (each.end - each.start)

    def neighbors(each: Candidate) -> int:
        before = each.start > 0 and are_native[each.start - 1]
        return before + (each.end < len(are_native) and are_native[each.end])

    return [
        each._replace(saved=each.saved + neighbors(each) * _KERNEL_CALL)
        for each in candidates
        if not _is_one_function(each)
        or (neighbors(each) and not _is_large_reduction(each.kernel))
    ]


def _is_one_function(each: Candidate) -> bool:
    """Return whether a kernel stands for one quick function of NumPy."""
    is_loop = not each.kernel.may_fail
    return is_loop and each.end - each.start == 1 and each.kernel.work < SHARED


def _is_large_reduction(kernel: Kernel) -> bool:
    return kernel.reduces and kernel.work > _LITTLE


def numpy_time(operations: Operations) -> float:
    """Return an estimate of the nanoseconds of a NumPy call."""
    return _NUMPY_CALL + _NUMPY_ELEMENT * sum(map(_element_cost, operations))


def _element_cost(call: KernelCall) -> int:
    """Return the cost of an operation by NumPy, in additions of elements."""
    nested = [part for part in call.operands if isinstance(part, KernelCall)]
    own = prod(call.shape) * cost_of(call.name)
    return own + sum(map(_element_cost, nested))


def profitable(candidates: list[Candidate]) -> list[Candidate]:
    """Return the candidates that save enough, in order.

    Equal kernels are compiled once, so that their savings add up. If there are too
    many, those that save most are returned.
    """
    saved: dict[str, float] = defaultdict(float)
    for candidate in candidates:
        saved[candidate.kernel.text] += candidate.saved
    worth = [text for text, time in saved.items() if time >= LEAST_SAVED]
    chosen = set(sorted(worth, key=lambda text: -saved[text])[:MOST_KERNELS])
    return [each for each in candidates if each.kernel.text in chosen]
