"""Sequences of calls with minimal overhead between them."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import call
from typing import Any

from burn.backend.cpu.bind.numpy_capture import UntraceableError
from burn.backend.cpu.jit.entries import Entry, Free, batches
from burn.backend.cpu.jit.policy import KernelPolicy
from burn.backend.cpu.onednn.binding.api import OneDnnError
from burn.backend.cpu.onednn.binding.engine import current
from burn.backend.cpu.onednn.binding.prepared import Fixed
from burn.plan.plan_ir import Read, Step

#: The maximum number of NumPy calls of a captured kernel. A recurrent layer of many
#: steps makes more, and is called as a whole.
MOST_TRACED = 2_000


class Sequence:
    """Calls of oneDNN, which return a status, and other calls, which do not.

    ``owned`` lives as long as the calls do.
    """

    def __init__(self) -> None:
        self.owned: list[Any] = []
        self._calls: list[Entry] = []
        self._most: int | None = None
        self._groups: list[tuple[bool, tuple[Callable[[], Any], ...]]] | None = None
        self._frees: list[Free] = []
        self._steps: tuple[Step | Read, ...] = ()
        self._pending = KernelPolicy.NONE
        #: Joins several calls to one where that saves time.
        self._batch: Callable[[list[Entry]], Callable[[], Any]] | None = None
        #: The reasons why oneDNN does not compute steps, by the step's id.
        self.reasons: dict[int, str] = {}

    def start(self, step: Step | Read) -> None:
        """Set the step of the next calls."""
        self._steps = (step,)

    def explain(self, reason: str) -> None:
        """Record why oneDNN does not compute the current step."""
        self.reasons[id(self._steps[0])] = reason

    def engine(self, fixed: Fixed) -> None:
        """Append a primitive of oneDNN."""
        name = fixed.implementation
        self._calls.append(Entry(fixed.alone, fixed.call, self._steps, name))
        self.owned.append(fixed.owned)

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Refuse a kernel of more than :data:`MOST_TRACED` NumPy calls.

        It raises :class:`UntraceableError` then.
        """
        self._most = len(self._calls) + MOST_TRACED
        try:
            yield
        finally:
            self._most = None

    def numpy(self, function: Callable[[], Any]) -> None:
        """Append another call, whose result is ignored."""
        if self._most is not None and len(self._calls) >= self._most:
            raise UntraceableError(f"it makes more than {MOST_TRACED} calls")
        self._calls.append(Entry(None, function, self._steps))

    def mark(self) -> int:
        """Return the number of calls."""
        return len(self._calls)

    def back_to(self, mark: int, reason: str = "") -> None:
        """Remove the calls after the first ``mark``, for a ``reason``."""
        del self._calls[mark:]
        if reason:
            self.explain(reason)

    def freed(self, low: int, high: int) -> None:
        """Record that the memory between two addresses is dead after these calls."""
        self._frees.append(Free(len(self._calls), low, high))

    def ends_in_engine(self) -> bool:
        """Return whether the last call is oneDNN's, or there is none."""
        return not self._calls or self._calls[-1].alone is not None

    def join(self, policy: KernelPolicy) -> None:
        """Replace NumPy calls by generated kernels."""
        from burn.backend.cpu.bind.native_calls import (
            are_worth_batches,
            as_machine_code,
            batch,
        )

        self._pending = KernelPolicy.NONE
        self._calls, owned = as_machine_code(self._calls, self._frees, policy)
        self.owned += owned
        self._batch = batch if are_worth_batches(self._calls) else None

    def join_later(self, policy: KernelPolicy) -> None:
        """Replace NumPy calls by generated kernels when the calls are first repeated.

        Loading LLVM takes longer than binding a small model. A process that calls the
        plan only once or twice does not pay for it.
        """
        self._pending = policy

    def replace(self, change: Callable[[Entry], Callable[[], Any]]) -> None:
        """Replace each call by the result of ``change``."""
        self._calls = [
            entry._replace(call=change(entry), native=None) for entry in self._calls
        ]
        self._groups = None

    def __len__(self) -> int:
        return len(self._calls)

    def run(self) -> None:
        """Make the calls.

        Raises:
            OneDnnError: a primitive fails.
        """
        groups = self._groups
        if groups is None:
            if self._pending.is_generating:
                self.join(self._pending)
            groups = self._groups = self._call_groups()
        for engine, calls in groups:
            if not engine:
                deque(map(call, calls), 0)
            elif any(map(call, calls)):
                raise OneDnnError("primitive_execute", 5)

    def _call_groups(self) -> list[tuple[bool, tuple[Callable[[], Any], ...]]]:
        """Return runs of calls of one kind, with thread count changes in between."""
        groups: list[tuple[bool, list[Callable[[], Any]]]] = []

        def append(engine: bool, function: Callable[[], Any]) -> None:
            if not groups or groups[-1][0] != engine:
                groups.append((engine, []))
            groups[-1][1].append(function)

        alone_now = False
        for entries in batches(self._calls, self._batch is not None):
            alone = next((e.alone for e in entries if e.alone is not None), None)
            if alone is not None and alone != alone_now:
                append(True, _threads(alone))
                alone_now = alone
            if self._batch is not None and len(entries) > 1:
                append(False, self._batch(entries))
            else:
                append(alone is not None, entries[0].call)
        if alone_now:
            append(True, _threads(False))
        return [(engine, tuple(calls)) for engine, calls in groups]


def _threads(alone: bool) -> Callable[[], Any]:
    """Return a call that enables or disables multithreading."""
    session = current()
    assert session is not None
    api = session.api
    assert api.set_threads is not None
    return partial(api.set_threads, 1) if alone else api.restore_threads
