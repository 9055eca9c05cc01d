"""Inputs of a plan, which are copied or read where the caller has them."""

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
    """What sets an input of a plan, and a limit of its magnitudes.

    It is infinite where nothing depends on that.
    """

    set: Callable[[Array], None]
    limit: float

    def take(self, array: Array) -> None:
        """Let ``array`` be the input of the next run.

        Raises:
            NotFiniteError: there are infinities, NaN, or magnitudes above the limit.
        """
        if not (
            is_finite(array) if self.limit == inf else is_within(array, self.limit)
        ):
            raise NotFiniteError
        self.set(array)


class Inputs:
    """The inputs that nothing but primitives has read so far, by their buffers."""

    def __init__(self, session: Session | None) -> None:
        self._session = session
        self._known: dict[Buffer, _Input] = {}
        self._operands: set[Buffer] = set()

    def add(self, buffer: Buffer | None, target: Array) -> Callable[[Array], None]:
        """What sets an input for a run, which is in memory of the plan this time."""
        session = self._session
        if session is None or buffer is None or target.nbytes < LEAST:
            return partial(np.copyto, target)
        entry = self._known[buffer] = _Input(session, target)
        return entry.set

    def __contains__(self, buffer: Buffer) -> bool:
        return buffer in self._known

    def start(self, operands: Iterable[Buffer]) -> None:
        """Know what the next calls may read."""
        self._operands = self._known.keys() & operands

    def execute(self, fixed: Fixed, addresses: tuple[int, ...]) -> None:
        """Note which of its operands are inputs."""
        for entry in self._known.values():
            for memory, start in zip(fixed.places, addresses, strict=True):
                entry.read(memory, start)

    def call(self) -> None:
        """Note that something reads the operands that cannot be told of another place.

        They are copied in every run.
        """
        for buffer in self._operands:
            del self._known[buffer]
        self._operands = set()

    def release(self, buffer: Buffer) -> None:
        """Nobody reads ``buffer`` any more: if it is an input, all that do are known.

        From the next run on they are told where the caller has it.
        """
        entry = self._known.pop(buffer, None)
        if entry is not None:
            entry.lend()


class _Input:
    """Memory of a plan for one input, and which primitives read it.

    What the caller has is copied all the same if it is laid out in another way.
    """

    def __init__(self, session: Session, target: Array) -> None:
        self._target, self._point = target, session.api.point
        self._start = self._place = address(target)
        self._readers: list[tuple[int, int]] = []
        self._is_lent = False

    def read(self, memory: int, start: int) -> None:
        """Note a memory object that starts at ``start``, if that is in the input."""
        if 0 <= start - self._start < self._target.nbytes:
            self._readers.append((memory, start - self._start))

    def lend(self) -> None:
        self._is_lent = True

    def set(self, array: Array) -> None:
        """Let what reads the input read ``array``, for one run."""
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
