"""Replacement of NumPy calls by generated kernels."""

from collections.abc import Callable
from typing import Any, NamedTuple

from burn.backend.cpu.jit.calls import Operations, read
from burn.backend.cpu.jit.groups import CALLS, Free, Frees, Group
from burn.backend.cpu.jit.loops import UnwritableError
from burn.backend.cpu.jit.machine import SHARED, machine
from burn.backend.cpu.jit.selection import (
    Candidate,
    KernelPolicy,
    can_pay,
    profitable,
    saved_time,
)
from burn.backend.cpu.jit.source import Kernel, written
from burn.plan.plan_ir import Read, Step

#: The kernel of an entry that a generated kernel makes.
GENERATED = "generated"


class Entry(NamedTuple):
    """A call of a plan, and the plan steps it belongs to.

    ``alone`` is None for a call that is not oneDNN's, else whether it is
    single-threaded. ``kernel`` is oneDNN's name of its code, or :data:`GENERATED`.
    """

    alone: bool | None
    call: Callable[[], Any]
    steps: tuple[Step | Read, ...] = ()
    kernel: str = ""


def joined(
    calls: list[Entry], frees: list[Free], policy: KernelPolicy
) -> tuple[list[Entry], list[Any]]:
    """Return the calls, with consecutive NumPy calls replaced by generated kernels.

    The second result must live as long as the calls.
    """
    reads = [read(entry.call) if entry.alone is None else None for entry in calls]
    if policy is KernelPolicy.PROFITABLE and not can_pay(reads):
        return calls, []
    chosen = _candidates(reads, Frees(frees))
    if policy is KernelPolicy.PROFITABLE:
        chosen = profitable(chosen)
    entries: list[Entry] = []
    owned: list[Any] = []
    position = 0
    for start, end, kernel, _ in chosen:
        call, mine = machine().call(kernel)
        joint = calls[start:end]
        steps = {id(step): step for entry in joint for step in entry.steps}
        entries += calls[position:start]
        entries.append(Entry(None, call, tuple(steps.values()), GENERATED))
        owned += [mine, joint]
        position = end
    return entries + calls[position:], owned


def _candidates(calls: list[Operations | None], frees: Frees) -> list[Candidate]:
    """Return the longest kernels for consecutive calls, in order."""
    candidates: list[Candidate] = []
    position = 0
    while position < len(calls):
        group, reads = _grown(calls, position, frees)
        kernel = _kernel(group, reads, frees) if reads else None
        if kernel is None:
            position += 1
            continue
        count, generated = kernel
        saved = saved_time(reads[:count], generated)
        end = position + count
        candidates.append(Candidate(position, end, generated, saved))
        position = end
    return candidates


def _grown(
    calls: list[Operations | None], start: int, frees: Frees
) -> tuple[Group, list[Operations]]:
    """Return the longest group from ``start``, and the operations of its calls."""
    group, reads = Group(start), []
    for operations in calls[start : start + CALLS]:
        if operations is None or not group.take(operations, frees):
            break
        reads.append(operations)
    return group, reads


def _kernel(
    group: Group, reads: list[Operations], frees: Frees
) -> tuple[int, Kernel] | None:
    """Return the number of calls and the kernel of the longest profitable prefix."""
    for count in range(len(reads), 0, -1):
        if count != group.count:
            group = Group(group.start)
            if not all(group.take(one, frees) for one in reads[:count]):
                continue
        try:
            kernel = written(group, group.stores(frees))
        except UnwritableError:
            continue
        # A single function gains nothing but the help of other threads.
        if count > 1 or kernel.work >= SHARED:
            return count, kernel
    return None
