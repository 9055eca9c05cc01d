"""Upper bounds of the magnitudes of values, which exclude overflow in plans.

oneDNN may return a number where NaN is correct (a fused ReLU), or NaN where an infinity
is (Winograd sums, GELU). It is correct for finite numbers. A bound of each value
follows from the bounds of the operands; if it does not prove that all values are
finite, the plan compares an operand with a limit in each run.
"""

from collections.abc import Callable
from functools import partial
from math import inf, isfinite, sqrt
from typing import Any, NamedTuple

import numpy as np

from burn import dtypes
from burn.backend.cpu.bind.bounds import (
    LARGEST,
    PRODUCTS,
    is_safe,
    magnitude,
    operands_at_risk,
)
from burn.backend.cpu.bind.finite import NotFiniteError
from burn.ops.bounds import INTEGERS
from burn.ops.fused import batch_norm_then
from burn.ops.norm import batch_norm
from burn.ops.shape import concat
from burn.ops.support import Array
from burn.plan.plan_ir import Slot, Step, slots_in
from burn.tensor import Tensor

#: Their results are bounded by their first operand alone.
_NORMS = frozenset({batch_norm, batch_norm_then})
#: The maximum ratio of a value's magnitude to that at binding time.
_GROWTH, _LEAST = 1e6, 1e9
#: Up to this number of elements BLAS sums squares on one thread, in a tenth of the time
#: of a minimum and a maximum.
_FEW = 10_000
#: The elements of a block of rows that is converted to float32 at once.
_BLOCK = 1 << 16
#: The largest magnitude whose square may underflow in float32.
_UNDERFLOWING = 1.1e-19


class _Normed(NamedTuple):
    """The operand of a norm, and the factor and offset of its result's bound."""

    source: int
    scale: float
    shift: float


def largest(array: Any) -> float:
    """Return the largest magnitude in ``array``, infinity if there is a NaN."""
    if array.dtype.kind in "Oc" or not array.size:
        return inf if array.dtype.kind == "c" else 0.0
    if not dtypes.is_float(array.dtype):
        return 1.0 if array.dtype.kind == "b" else INTEGERS
    magnitude = max(-float(np.min(array)), float(np.max(array)))
    return magnitude if isfinite(magnitude) else inf


def row_sum_bound(array: Array) -> float:
    """Return a bound of the sums of magnitudes in ``array[n]``; NaN if it has a NaN.

    A sum of ``n`` magnitudes is at most the root of ``n`` times the sum of their
    squares, which BLAS computes in one pass over memory. Squares that underflow are
    accounted for; a sum of squares that overflows proves nothing.
    """
    if not array.size:
        return 0.0
    matrix = array.reshape(len(array), -1)
    count = matrix.shape[1]
    rows = len(matrix) if array.dtype.char in "fd" else max(_BLOCK // count, 1)
    squares = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(matrix), rows):
            part = matrix[start : start + rows]
            if part.dtype.char not in "fd":
                part = part.astype(np.float32)
            squares = float(np.maximum(squares, np.vecdot(part, part).max()))
    bound: float = sqrt(count * squares) + count * _UNDERFLOWING
    return bound


def is_within(array: Array, limit: float) -> bool:
    """Return whether no magnitude in ``array`` is above ``limit``, and none is NaN."""
    if not array.size:
        return True
    if _has_few(array):
        elements = array.reshape(-1)
        if float(elements.dot(elements)) < _square(limit):
            return True
    return _are_extremes_within(array, limit)


def _has_few(array: Array) -> bool:
    """Return whether a sum of squares takes less time than two extremes."""
    return array.size <= _FEW and array.dtype.char in "fd" and array.flags.c_contiguous


def _square(limit: float) -> float:
    """Return a bound of the sum of squares that keeps magnitudes within ``limit``.

    No square is above the sum, but for rounding. An infinite sum proves nothing.
    """
    return 0.999 * limit * limit


def _are_extremes_within(array: Array, limit: float) -> bool:
    return bool(
        np.maximum.reduce(array, axis=None) <= limit
        and np.minimum.reduce(array, axis=None) >= -limit
    )


def limit_for(array: Array) -> float:
    """Return a limit for later values of ``array``, infinity if that is not finite."""
    magnitude = largest(array)
    return (
        inf if magnitude > LARGEST else min(max(magnitude * _GROWTH, _LEAST), LARGEST)
    )


class Magnitudes:
    """The bounds of the slots of a plan, which is bound to ``values``."""

    def __init__(self, values: dict[int, Array], constants: set[int]) -> None:
        self._values, self._constants = values, constants
        self._known: dict[int, float] = {}
        self._normed: dict[int, _Normed] = {}
        # The operands of concatenations, by the place of the result.
        self._joined: dict[int, tuple[int, ...]] = {}
        self._row_sums: dict[int | None, float] = {}

    def branched(self, values: dict[int, Array], constants: set[int]) -> "Magnitudes":
        """Return the bounds for a branch that continues from the current state."""
        other = Magnitudes(values, constants)
        other._known, other._normed = dict(self._known), dict(self._normed)
        other._joined = dict(self._joined)
        return other

    def set(self, slot: int, bound: float, maker: Step | None = None) -> None:
        """Set the bound and the producer of ``slot``."""
        self._known[slot] = bound
        if maker is not None and maker.primitive is concat:
            if all(type(part) is Slot for part in maker.args[0]):
                self._joined[slot] = tuple(part.place for part in maker.args[0])
        elif (
            maker is not None
            and maker.primitive in _NORMS
            and type(maker.args[0]) is Slot
            and isfinite(bound)
        ):
            source = maker.args[0].place
            before = self._known[source]
            least, more = (
                self._propagate(source, value, maker) for value in (0.0, 1.0)
            )
            self._known[source] = before
            self._normed[slot] = _Normed(source, more - least, least)

    def _propagate(self, source: int, bound: float, maker: Step) -> float:
        """Return the bound of ``maker`` if that of ``source`` is ``bound``."""
        self._known[source] = bound
        return magnitude(maker, self)

    def limit(self, slot: int, array: Array) -> float:
        """Return the limit of an input, infinity unless it has floats."""
        limit = limit_for(array) if dtypes.is_float(array.dtype) else inf
        self.set(slot, limit)
        return limit

    def bound(self, arg: Any) -> float:
        """Return an upper bound of an argument's magnitudes, infinity if unknown."""
        kind = type(arg)
        if kind is Slot:
            magnitude = self._known.get(arg.place)
            if magnitude is None and arg.place in self._constants:
                magnitude = self._known[arg.place] = largest(self._values[arg.place])
            return inf if magnitude is None else magnitude
        if kind in (int, float):
            return abs(arg) if abs(arg) <= LARGEST else inf
        if kind is list or kind is tuple:
            return max(map(self.bound, arg), default=0.0)
        if kind is Tensor:
            return largest(arg.numpy())
        return 0.0

    def shape(self, arg: Any) -> tuple[int, ...]:
        """Return the shape of an argument that is a tensor."""
        shape: tuple[int, ...] = np.shape(self._array(arg))
        return shape

    def constant(self, arg: Any) -> Array | None:
        """Return the array of an argument that is the same in each run."""
        if type(arg) is Slot and arg.place not in self._constants:
            return None
        constant: Array = self._array(arg)
        return constant

    def row_sum(self, arg: Any) -> float | None:
        """Return a bound of the row sums of magnitudes of a constant, else None."""
        slot = arg.place if type(arg) is Slot else None
        total = self._row_sums.get(slot)
        if total is None and (array := self.constant(arg)) is not None:
            total = row_sum_bound(array)
            if slot is not None:  # the rules of several steps ask for it
                self._row_sums[slot] = total
        return total

    def _array(self, arg: Any) -> Any:
        if type(arg) is Slot:
            return self._values[arg.place]
        return arg.numpy() if type(arg) is Tensor else arg

    def checks(
        self, step: Step, *, rounds: bool, may_check: bool
    ) -> list[tuple[int, float]] | None:
        """Return the slots whose limits are checked before oneDNN may compute a step.

        None if it must not compute the step, or if checks are needed and not allowed.

        Raises:
            NotFiniteError: a value is not finite in this run, or a product of values
                within limits may overflow.
        """
        operands = operands_at_risk(step, rounds=rounds)
        if not operands or is_safe(step, self):
            return []
        return self._limits(step, operands) if may_check else None

    def _limits(
        self, step: Step, operands: tuple[int, ...]
    ) -> list[tuple[int, float]] | None:
        before, limits = dict(self._known), []
        for result in slots_in([step.args[index] for index in operands]):
            for slot in self._checked_for(result):
                array = self._values[slot]
                if slot in self._constants or not dtypes.is_float(array.dtype):
                    continue
                limit = limit_for(array)
                if limit > LARGEST:
                    raise NotFiniteError
                if limit < self._known.get(slot, inf):
                    self._known[slot] = limit
                    limits.append((slot, limit))
            self._follow(result)
        if not is_safe(step, self):
            self._known = before
            if step.primitive in PRODUCTS:  # by weights that are not as recorded
                raise NotFiniteError
            return None
        return limits

    def _checked_for(self, slot: int) -> tuple[int, ...]:
        """Return the places whose limits are checked on behalf of ``slot``.

        Results of a norm share one limit on its operand. Operands of a concatenation,
        most of which others read as well, are checked rather than copies of them.
        """
        normed, parts = self._normed.get(slot), self._joined.get(slot, ())
        sources = (normed.source,) if normed is not None else parts
        is_there = sources and all(source in self._values for source in sources)
        return sources if is_there else (slot,)

    def _follow(self, slot: int) -> None:
        """Set the bound of ``slot`` by those of the places that were checked for it."""
        sources = self._checked_for(slot)
        if sources == (slot,):
            return
        self._known[slot] = max(self.bound(Slot(source)) for source in sources)
        if slot in self._normed:
            _, scale, shift = self._normed[slot]
            self._known[slot] = self._known[slot] * scale + shift


def check_within(array: Array, limit: float) -> Callable[[], None]:
    """Return a call that leaves the program if ``array`` exceeds ``limit`` or has NaN.

    It reads the elements in memory order.
    """
    axes = sorted(range(array.ndim), key=lambda a: -abs(array.strides[a]))
    ordered = array.transpose(axes)
    memory = np.empty(ordered.shape, ordered.dtype)
    if not ordered.size or not _has_few(memory):
        return partial(expect_within, ordered, limit)
    if ordered.flags.c_contiguous:
        memory = ordered
    source = None if memory is ordered else ordered
    elements = memory.reshape(-1)
    rest = (elements, elements.dot, limit, _square(limit))
    return partial(expect_few_within, source, memory, *rest)


def expect_few_within(
    source: Array | None,
    memory: Array,
    elements: Array,
    dot: Callable[[Array], Any],
    limit: float,
    square: float,
) -> None:
    """Leave the program like :func:`expect_within`.

    ``source`` is copied to row-major ``memory`` first. ``elements`` are those of
    ``memory``, ``dot`` is their method, and ``square`` a bound of their squares.
    """
    if source is not None:
        np.copyto(memory, source)
    if not float(dot(elements)) < square and not _are_extremes_within(elements, limit):
        raise NotFiniteError


def expect_within(array: Array, limit: float) -> None:
    """Leave the program if ``array`` has magnitudes above ``limit``, or NaN."""
    if not is_within(array, limit):
        raise NotFiniteError
