"""Selection of the generated kernels that are worth their compilation."""

from collections import defaultdict
from collections.abc import Iterable
from enum import Enum, auto
from functools import cache
from itertools import groupby
from math import prod
from typing import NamedTuple

from burn.backend.cpu.jit.calls import KernelCall, Operations
from burn.backend.cpu.jit.functions import cost_of
from burn.backend.cpu.jit.source import Kernel

#: A kernel must save so many nanoseconds in each run: it takes about 25 ms to compile,
#: which is 20 000 runs.
LEAST_SAVED = 1_250
#: The maximum number of kernels of a sequence of calls: their compilation takes 1.6 s.
MOST_KERNELS = 64
#: The bytes of dead values that are held back for kernels at most, and those that
#: kernels of small plans may hold if they are not asked for.
MOST_HELD, LEAST_HELD = 64 << 20, 1 << 19
#: Nanoseconds of a call of NumPy, and of a generated kernel, without elements.
_NUMPY_CALL, _KERNEL_CALL = 550, 450
#: Nanoseconds of an addition of two elements by NumPy, and of a unit of a kernel's
#: work: NumPy reads and writes memory for each function.
_NUMPY_ELEMENT, _KERNEL_ELEMENT = 0.25, 0.05
#: The first version of llvmlite with LLVM's new pass builder.
_OLDEST = (0, 45)


class KernelPolicy(Enum):
    """Which NumPy calls become generated kernels."""

    NONE = auto()
    #: Those whose estimated saving pays for the compilation.
    PROFITABLE = auto()
    ALL = auto()

    @property
    def is_generating(self) -> bool:
        return self is not KernelPolicy.NONE


class Candidate(NamedTuple):
    """A kernel for calls from ``start`` to ``end``, with the nanoseconds it saves."""

    start: int
    end: int
    kernel: Kernel
    saved: float


@cache
def has_compiler() -> bool:
    """Return whether a version of llvmlite that generated kernels support is
    installed.
    """
    try:
        from llvmlite import __version__  # quicker than importlib.metadata
    except ImportError:
        return False
    return tuple(map(int, __version__.split(".")[:2])) >= _OLDEST


def held_bytes(policy: KernelPolicy, peak: int) -> int:
    """Return how much memory a plan of ``peak`` bytes holds back for fused kernels."""
    if policy is KernelPolicy.PROFITABLE:
        return min(max(peak, LEAST_HELD), MOST_HELD)
    return MOST_HELD if policy is KernelPolicy.ALL else 0


def can_pay(calls: Iterable[Operations | None]) -> bool:
    """Return whether kernels may save enough, without writing them.

    ``calls`` are the operations of each call, None where no kernel supports it. A
    kernel replaces consecutive calls and takes the time of one call at least.
    """
    most = 0.0
    for is_supported, run in groupby(calls, lambda each: each is not None):
        if is_supported:
            most += sum(_numpy_time(each or []) for each in run) - _KERNEL_CALL
    return most >= LEAST_SAVED


def saved_time(calls: Iterable[Operations], kernel: Kernel) -> float:
    """Return an estimate of the nanoseconds that ``kernel`` saves in each run.

    ``calls`` are the operations of each NumPy call that it replaces.
    """
    own = _KERNEL_CALL + _KERNEL_ELEMENT * kernel.work
    return sum(map(_numpy_time, calls)) - own


def _numpy_time(operations: Operations) -> float:
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
