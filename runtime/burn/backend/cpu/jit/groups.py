"""Grouping of calls that can be fused into one loop, with liveness of values."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from burn.backend.cpu.jit.calls import COPY, KernelCall
from burn.backend.cpu.jit.entries import Free
from burn.backend.cpu.jit.functions import result_of
from burn.backend.cpu.onednn.binding.memory import address
from burn.ops.support import Array
from burn.structs import Struct

#: The most calls of a group, and the most arrays that one reads and writes.
CALLS, ARRAYS = 64, 24
# The effort limit of the search for shared memory.
_SEARCH = 1_000


class Place(NamedTuple):
    """The address of a value's elements, as strides in bytes along each axis.

    The stride is 0 along broadcast axes.
    """

    address: int
    dtype: np.dtype[Any]
    strides: tuple[int, ...]


class LoopValue(Struct):
    """A value computed by a loop; without a name it is read from a place.

    ``axes`` are those that it reduces; ``row`` values are invariant along the axes that
    the group reduces. ``stage`` is the number of passes over those axes that must be
    complete before the value is available.
    """

    name: str
    operands: tuple[Any, ...]
    types: tuple[np.dtype[Any], ...]
    dtype: np.dtype[Any]
    row: bool
    stage: int
    place: Place | None = None
    reduces: bool = False


class Store(NamedTuple):
    """A value that is written to memory."""

    place: Place
    value: LoopValue


class Group:
    """Consecutive calls over the same elements.

    ``shape`` is the iteration shape, ``axes`` are the reduced axes. ``start`` is the
    number of its first call.
    """

    def __init__(self, start: int) -> None:
        self.start, self.count = start, 0
        self.shape: tuple[int, ...] = ()
        self.axes: tuple[int, ...] | None = None
        self.arrays: dict[Place, Array] = {}
        self.current: dict[Place, tuple[LoopValue, int]] = {}
        self._read: dict[Place, LoopValue] = {}

    def take(self, calls: Iterable[KernelCall], frees: "Frees") -> bool:
        """Add the operations of a NumPy call; return False if it is impossible."""
        before = (self.shape, self.axes, dict(self.current), dict(self._read))
        arrays = dict(self.arrays)
        position = self.start + self.count
        if self.count < CALLS and all(
            self._can_add(call, position, frees) for call in calls
        ):
            self.count += 1
            return True
        self.shape, self.axes, self.current, self._read = before
        self.arrays = arrays
        return False

    def stores(self, frees: "Frees") -> list[Store]:
        """Return the values that are live after the group."""
        end = self.start + self.count
        return [
            Store(view, value)
            for view, (value, position) in self.current.items()
            if not frees.are(self.arrays[view], position, end)
        ]

    def _can_add(self, call: KernelCall, position: int, frees: "Frees") -> bool:
        if not self.count and not self.current:
            self.shape = call.shape
            if 0 in self.shape:
                return False
        if call.axes is not None:
            if call.shape != self.shape or self.axes not in (None, call.axes):
                return False
            self.axes = call.axes
        value = self._value(call, position, frees)
        if value is None or call.target is None:
            return False
        kind = call.target.dtype
        if value.dtype != kind:
            value = LoopValue(COPY, (value,), (kind,), kind, value.row, value.stage)
        return self._store(call.target, value, position, frees)

    def _value(
        self, call: KernelCall, position: int, frees: "Frees"
    ) -> LoopValue | None:
        """Return the value of a call, None if it has another iteration shape."""
        shape = call.shape
        row = call.axes is None and shape != self.shape and self._is_row(shape)
        if shape != self.shape and not row:
            return None
        operands = []
        for operand in call.operands:
            if isinstance(operand, KernelCall):
                value: Any = self._value(operand, position, frees)
            elif isinstance(operand, np.ndarray):
                value = self._operand(operand, shape, position, frees)
            else:
                value = operand
            if value is None:
                return None
            operands.append(value)
        stage = max((v.stage for v in operands if isinstance(v, LoopValue)), default=0)
        reduces = call.axes is not None
        dtype = result_of(call.name, call.types)
        rest = (dtype, row or reduces, stage + reduces, None, reduces)
        return LoopValue(call.name, tuple(operands), call.types, *rest)

    def _operand(
        self, array: Array, shape: tuple[int, ...], position: int, frees: "Frees"
    ) -> LoopValue | None:
        view = self._place(array, shape)
        if view is None:
            return None
        if view in self.current:
            return self.current[view][0]
        if any(self._overlapping_places(array, frees, position)):
            return None
        self.arrays[view] = array
        new = LoopValue("", (), (), array.dtype, False, 0, view)
        return self._read.setdefault(view, new)

    def _store(
        self, target: Array, value: LoopValue, position: int, frees: "Frees"
    ) -> bool:
        view = self._place(target, target.shape)
        if view is None or any(
            not stride and extent != 1 and axis not in (self.axes or ())
            for axis, (stride, extent) in enumerate(
                zip(view.strides, self.shape, strict=True)
            )
        ):
            return False
        if not value.row and any(
            not view.strides[axis] and self.shape[axis] != 1 for axis in self.axes or ()
        ):
            return False
        for other in list(self._overlapping_places(target, frees, position, view)):
            if not frees.are(self.arrays[other], self.current[other][1], position):
                return False
            del self.current[other]
        self.arrays[view] = target
        self.current[view] = (value, position)
        return len(self.arrays) <= ARRAYS

    def _overlapping_places(
        self, array: Array, frees: "Frees", position: int, but: Place | None = None
    ) -> Iterator[Place]:
        """Yield the places of the group's values that overlap with ``array``."""
        for view, (_, since) in self.current.items():
            mine = self.arrays[view]
            if view == but or not np.may_share_memory(mine, array):
                continue
            if but is None and frees.are(mine, since, position):
                continue
            if overlap(mine, array):
                yield view

    def _is_row(self, shape: tuple[int, ...]) -> bool:
        return self.axes is not None and shape in (
            self._kept_shape(),
            self._reduced_shape(),
        )

    def _kept_shape(self) -> tuple[int, ...]:
        axes = self.axes or ()
        return tuple(n for a, n in enumerate(self.shape) if a not in axes)

    def _reduced_shape(self) -> tuple[int, ...]:
        axes = self.axes or ()
        return tuple(1 if a in axes else n for a, n in enumerate(self.shape))

    def _place(self, array: Array, shape: tuple[int, ...]) -> Place | None:
        """Return the place of ``array``, broadcast to ``shape``."""
        pairs = list(zip(np.broadcast_to(array, shape).strides, shape, strict=True))
        if (
            shape not in (self.shape, self._reduced_shape())
            and shape == self._kept_shape()
        ):
            for axis in self.axes or ():
                pairs.insert(axis, (0, 1))
        if len(pairs) != len(self.shape):
            return None
        strides = tuple(stride if extent != 1 else 0 for stride, extent in pairs)
        return Place(address(array), array.dtype, strides)


class Frees:
    """The times at which memory becomes dead."""

    def __init__(self, frees: list[Free]) -> None:
        self._frees = sorted(frees)

    def are(self, array: Array, since: int, until: int) -> bool:
        """Return whether ``array``, written by call ``since``, is dead at ``until``."""
        low, high = np.lib.array_utils.byte_bounds(array)
        first = bisect_right(self._frees, since, key=attrgetter("calls"))
        last = bisect_right(self._frees, until, key=attrgetter("calls"))
        return any(
            free.low <= low and high <= free.high for free in self._frees[first:last]
        )


def overlap(a: Array, b: Array) -> bool:
    """Return whether two arrays may overlap."""
    try:
        return np.shares_memory(a, b, max_work=_SEARCH)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True
