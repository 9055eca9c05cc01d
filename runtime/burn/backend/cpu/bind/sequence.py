"""Calls in a row, made with as little as possible between them."""

from collections import deque
from collections.abc import Callable
from functools import partial
from operator import call
from typing import Any

from burn.backend.cpu.jit.groups import Free
from burn.backend.cpu.jit.joining import joined
from burn.backend.cpu.onednn.binding.api import OneDnnError
from burn.backend.cpu.onednn.binding.engine import current
from burn.backend.cpu.onednn.binding.prepared import Fixed


class Sequence:
    """Calls of oneDNN, which answer with a status, between others, which do not.

    ``owned`` lives as long as the calls do.
    """

    def __init__(self) -> None:
        self.owned: list[Any] = []
        self._calls: list[tuple[bool | None, Callable[[], Any]]] = []
        self._groups: list[tuple[bool, tuple[Callable[[], Any], ...]]] | None = None
        self._frees: list[Free] = []

    def engine(self, fixed: Fixed) -> None:
        """Append a primitive of oneDNN."""
        self._calls.append((fixed.alone, fixed.call))
        self.owned.append(fixed.owned)

    def numpy(self, function: Callable[[], Any]) -> None:
        """Append any other call; what it returns does not matter."""
        self._calls.append((None, function))

    def mark(self) -> int:
        """How many calls there are."""
        return len(self._calls)

    def back_to(self, mark: int) -> None:
        """Drop what was appended since there were ``mark`` calls."""
        del self._calls[mark:]

    def freed(self, low: int, high: int) -> None:
        """Note that nobody needs what is between two addresses after these calls."""
        self._frees.append(Free(len(self._calls), low, high))

    def ends_in_engine(self) -> bool:
        """Whether the last call is oneDNN's, or there is none."""
        return not self._calls or self._calls[-1][0] is not None

    def join(self) -> None:
        """Let kernels that are generated do what NumPy's functions would."""
        self._calls, owned = joined(self._calls, self._frees)
        self.owned += owned

    def __len__(self) -> int:
        return len(self._calls)

    def run(self) -> None:
        """Make the calls.

        Raises:
            OneDnnError: a primitive fails.
        """
        groups = self._groups
        if groups is None:
            groups = self._groups = self._grouped()
        for engine, calls in groups:
            if not engine:
                deque(map(call, calls), 0)
            elif any(map(call, calls)):
                raise OneDnnError("primitive_execute", 5)

    def _grouped(self) -> list[tuple[bool, tuple[Callable[[], Any], ...]]]:
        """Runs of calls of one kind, with changes of the number of threads between."""
        groups: list[tuple[bool, list[Callable[[], Any]]]] = []

        def append(engine: bool, function: Callable[[], Any]) -> None:
            if not groups or groups[-1][0] != engine:
                groups.append((engine, []))
            groups[-1][1].append(function)

        alone_now = False
        for alone, function in self._calls:
            if alone is not None and alone != alone_now:
                append(True, _threads(alone))
                alone_now = alone
            append(alone is not None, function)
        if alone_now:
            append(True, _threads(False))
        return [(engine, tuple(calls)) for engine, calls in groups]


def _threads(alone: bool) -> Callable[[], Any]:
    """The call that gives the thread help, or takes it away."""
    session = current()
    assert session is not None
    api = session.api
    assert api.set_threads is not None
    return partial(api.set_threads, 1 if alone else api.threads)
