"""Inputs of a plan, which are copied or read in place."""

from collections.abc import Callable, Iterable
from functools import partial
from math import inf
from typing import TypeAlias

import numpy as np

from burn.backend.cpu.bind.arena import Buffer
from burn.backend.cpu.bind.finite import NotFiniteError, is_finite
from burn.backend.cpu.bind.magnitudes import check_within, is_within
from burn.backend.cpu.onednn.binding.engine import Session
from burn.backend.cpu.onednn.binding.memory import address
from burn.backend.cpu.onednn.binding.prepared import Fixed
from burn.ops.support import Array

#: Fewer bytes are copied in less time than primitives are rebound to other memory.
LEAST = 16_384


#: A function that sets an input of the next run of a plan. It raises
#: :class:`NotFiniteError` for infinities, NaN, and magnitudes above a limit.
Setter: TypeAlias = Callable[[Array], None]


def _copying(target: Array, limit: float) -> Setter:
    """Return the setter of an input that is copied to ``target`` in each run."""
    copy = partial(np.copyto, target)
    if target.dtype.kind in "biu":
        return copy
    if limit == inf:
        return partial(_check_and_set, copy, limit)
    return partial(_copy_and_check, target, check_within(target, limit))


def _copy_and_check(target: Array, check: Callable[[], None], array: Array) -> None:
    np.copyto(target, array)
    check()


def _check_and_set(set_: Callable[[Array], None], limit: float, array: Array) -> None:
    """Set an input; an infinite ``limit`` allows all finite numbers."""
    if not (is_finite(array) if limit == inf else is_within(array, limit)):
        raise NotFiniteError
    set_(array)


class Inputs:
    """The inputs that only primitives have read so far, by buffer."""

    def __init__(self, session: Session | None) -> None:
        self._session = session
        self._known: dict[Buffer, _Input] = {}
        self._operands: set[Buffer] = set()

    def add(self, buffer: Buffer | None, target: Array, limit: float) -> Setter:
        """Return a setter of an input, which is in memory of the plan in this run.

        Magnitudes may not be above ``limit``, which is infinite if nothing depends on
        them.
        """
        session = self._session
        if session is None or buffer is None or target.nbytes < LEAST:
            return _copying(target, limit)
        entry = self._known[buffer] = _Input(session, target)
        return partial(_check_and_set, entry.set, limit)

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
        """Handle the end of the lifetime of ``buffer``, when all its readers are known.

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
