"""Replacement of calls by generated kernels."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from burn.backend.cpu.jit.batches import native_primitive
from burn.backend.cpu.jit.calls import Operations, parse_call
from burn.backend.cpu.jit.entries import GENERATED, Entry, Free, Native
from burn.backend.cpu.jit.groups import CALLS, Frees, Group
from burn.backend.cpu.jit.loops import UnwritableError
from burn.backend.cpu.jit.machine import machine
from burn.backend.cpu.jit.policy import KernelPolicy
from burn.backend.cpu.jit.selection import (
    Candidate,
    beside_others,
    can_pay,
    numpy_time,
    profitable,
    saved_time,
)
from burn.backend.cpu.jit.source import Kernel, group_kernel
from burn.ops.support import Array


class Single(NamedTuple):
    """The kernel of a single call, and the nanoseconds of the call without it."""

    kernel: Kernel
    time: float


class Pair(NamedTuple):
    """The kernel of two calls, if nothing reads ``between`` after the second.

    It is None if the second call overwrites it.
    """

    single: Single
    between: Array | None


class Finders(NamedTuple):
    """Functions that find the kernel of a call that is not part of a loop with others,
    and that of a call and the next one.
    """

    single: Callable[[Callable[[], Any]], Single | None]
    pair: Callable[[Callable[[], Any], Callable[[], Any]], Pair | None]


class _Call(NamedTuple):
    """A call with its possible replacements: operations of a loop, or a kernel."""

    operations: Operations | None = None
    single: Single | None = None
    native: Native | None = None

    @property
    def time(self) -> float | None:
        """The nanoseconds that machine code saves, None if it cannot make the call."""
        if self.operations is not None:
            return numpy_time(self.operations)
        if self.single is not None:
            return self.single.time
        return None if self.native is None else 0.0


def with_kernels(
    entries: list[Entry], frees: list[Free], policy: KernelPolicy, finders: Finders
) -> tuple[list[Entry], list[Any]]:
    """Return the calls, with those of NumPy replaced by generated kernels.

    The second result must live as long as the calls.
    """
    calls = [_classify(entry, finders) for entry in entries]
    if policy is KernelPolicy.PROFITABLE and not can_pay(call.time for call in calls):
        return entries, []
    dead = Frees(frees)
    pairs = dict(_fused_pairs(entries, dead, finders))
    chosen = _candidates(calls, dead, pairs)
    chosen = beside_others(chosen, [call.native is not None for call in calls])
    if policy is KernelPolicy.PROFITABLE:
        chosen = profitable(chosen)
    entries = [
        entry._replace(native=call.native)
        for entry, call in zip(entries, calls, strict=True)
    ]
    results: list[Entry] = []
    owned: list[Any] = []
    position = 0
    for start, end, kernel, _ in chosen:
        compiled = machine().call(kernel)
        joint = entries[start:end]
        steps = {id(step): step for entry in joint for step in entry.steps}
        call = compiled.call
        if kernel.may_fail:
            call = partial(_guarded, call, [entry.call for entry in joint])
        results += entries[position:start]
        results.append(
            Entry(None, call, tuple(steps.values()), GENERATED, compiled.native)
        )
        owned += [compiled.owned, kernel.owned, joint]
        position = end
    return results + entries[position:], owned


def _classify(entry: Entry, finders: Finders) -> _Call:
    if entry.alone is not None:
        return _Call(native=native_primitive(entry.call))
    operations = parse_call(entry.call)
    return _Call(operations, None if operations else finders.single(entry.call))


def _fused_pairs(
    entries: list[Entry], frees: Frees, finders: Finders
) -> Iterator[tuple[int, Single]]:
    """Yield the positions of calls that are one kernel with the next call."""
    for position, (one, other) in enumerate(pairwise(entries)):
        pair = finders.pair(one.call, other.call)
        if pair is None:
            continue
        single, between = pair
        if between is None or frees.are(between, position, position + 2):
            yield position, single


def _guarded(kernel: Callable[[], Any], calls: list[Callable[[], Any]]) -> None:
    """Run a kernel, and the calls that it replaces if it fails."""
    if kernel():
        for call in calls:
            call()


def _candidates(
    calls: list[_Call], frees: Frees, pairs: dict[int, Single]
) -> list[Candidate]:
    """Return the longest kernels for consecutive calls, in order."""
    candidates: list[Candidate] = []
    position = 0
    while position < len(calls):
        single = pairs.get(position, calls[position].single)
        if single is not None:
            saved = saved_time(single.time, single.kernel)
            end = position + 1 + (position in pairs)
            candidates.append(Candidate(position, end, single.kernel, saved))
            position = end
            continue
        group, reads = _longest_group(calls, position, frees)
        kernel = _kernel(group, reads, frees) if reads else None
        if kernel is None:
            position += 1
            continue
        count, generated = kernel
        saved = saved_time(sum(map(numpy_time, reads[:count])), generated)
        end = position + count
        candidates.append(Candidate(position, end, generated, saved))
        position = end
    return candidates


def _longest_group(
    calls: list[_Call], start: int, frees: Frees
) -> tuple[Group, list[Operations]]:
    """Return the longest group from ``start``, and the operations of its calls."""
    group, reads = Group(start), []
    for call in calls[start : start + CALLS]:
        operations = call.operations
        if operations is None or not group.take(operations, frees):
            break
        reads.append(operations)
    return group, reads


def _kernel(
    group: Group, reads: list[Operations], frees: Frees
) -> tuple[int, Kernel] | None:
    """Return the number of calls and the kernel of the longest prefix that is one."""
    for count in range(len(reads), 0, -1):
        if count != group.count:
            group = Group(group.start)
            if not all(group.take(one, frees) for one in reads[:count]):
                continue
        try:
            return count, group_kernel(group, group.stores(frees))
        except UnwritableError:
            continue
    return None
