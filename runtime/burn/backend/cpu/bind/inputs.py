"""Inputs of a plan, which are copied or read in place."""

from collections.abc import Callable, Iterable
from functools import partial
from math import inf
from typing import NamedTuple

import numpy as np

from burn.backend.cpu.bind.arena import Buffer
from burn.backend.cpu.bind.finite import NotFiniteError, is_finite
from burn.backend.cpu.bind.magnitudes import is_within
from burn.backend.cpu.onednn.binding.engine import Session
from burn.backend.cpu.onednn.binding.memory import address
from burn.backend.cpu.onednn.binding.prepared import Fixed
from burn.ops.support import Array

#: Fewer bytes are copied in less time than primitives are told of another place.
LEAST = 16_384


class Input(NamedTuple):
    """A setter of an input of a plan, and a limit for its magnitudes.

    The limit is infinite if nothing depends on it.
    """

    set: Callable[[Array], None]
    limit: float

    def take(self, array: Array) -> None:
        """Set the input of the next run to ``array``.

        Raises:
            NotFiniteError: there are infinities, NaN, or magnitudes above the limit.
        """
        if not (
            is_finite(array) if self.limit == inf else is_within(array, self.limit)
        ):
            raise NotFiniteError
        self.set(array)


class Inputs:
    """The inputs that only primitives have read so far, by buffer."""

    def __init__(self, session: Session | None) -> None:
        self._session = session
        self._known: dict[Buffer, _Input] = {}
        self._operands: set[Buffer] = set()

    def add(self, buffer: Buffer | None, target: Array) -> Callable[[Array], None]:
        """Return a setter of an input, which is in memory of the plan in this run."""
        session = self._session
        if session is None or buffer is None or target.nbytes < LEAST:
            return partial(np.copyto, target)
        entry = self._known[buffer] = _Input(session, target)
        return entry.set

    def __contains__(self, buffer: Buffer) -> bool:
        return buffer in self._known

    def start(self, operands: Iterable[Buffer]) -> None:
        """Set the operands that the next calls may read."""
        self._operands = self._known.keys() & operands

    def execute(self, fixed: Fixed, addresses: tuple[int, ...]) -> None:
        """Record which operands of a primitive are inputs."""
        for entry in self._known.values():
            for memory, start in zip(fixed.places, addresses, strict=True):
                entry.read(memory, start)

    def call(self) -> None:
        """Mark the operands as read by code that cannot be rebound to another buffer.

        They are copied in each run.
        """
        for buffer in self._operands:
            del self._known[buffer]
        self._operands = set()

    def release(self, buffer: Buffer) -> None:
        """Handle the end of the lifetime of ``buffer``: all readers of an input are
        known.

        In later runs they read the caller's memory directly.
        """
        entry = self._known.pop(buffer, None)
        if entry is not None:
            entry.lend()


class _Input:
    """Memory of a plan for one input, and the primitives that read it.

    The caller's array is copied if it has another layout.
    """

    def __init__(self, session: Session, target: Array) -> None:
        self._target, self._point = target, session.api.point
        self._start = self._place = address(target)
        self._readers: list[tuple[int, int]] = []
        self._is_lent = False

    def read(self, memory: int, start: int) -> None:
        """Record a memory object that starts at ``start``, if that is in the input."""
        if 0 <= start - self._start < self._target.nbytes:
            self._readers.append((memory, start - self._start))

    def lend(self) -> None:
        self._is_lent = True

    def set(self, array: Array) -> None:
        """Rebind all readers of the input to ``array``, for one run."""
        target = self._target
        alike = array.strides == target.strides and array.flags.aligned
        if self._is_lent and alike:
            self._move(address(array))
        else:
            self._move(self._start)
            np.copyto(target, array)

    def _move(self, start: int) -> None:
        if start != self._place:
            for memory, offset in self._readers:
                self._point(memory, start + offset)
            self._place = start
