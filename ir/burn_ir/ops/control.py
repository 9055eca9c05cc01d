"""Control-flow operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from burn.dtypes import bool_, int64
from burn_ir.containers import AnyType, SequenceType, either, sequence_of
from burn_ir.dim import Dim, symbols, unnamed
from burn_ir.errors import InvalidOperand, Undecided
from burn_ir.graph import Graph
from burn_ir.op import (
    Branch,
    Flow,
    Op,
    Repeat,
    Rows,
    Slices,
    Type,
    Value,
    body,
    operator,
)
from burn_ir.static import is_sequence, static_ints

#: Trip counts from here on mean "unlimited".
ENDLESS = 2**31 - 1


@operator
class If(Op, onnx="If", versions=(1, 11, 13, 16, 19, 21, 23, 24, 25)):
    """A choice of two subgraphs; operands after the condition are captured values."""

    else_branch: Graph = body()
    then_branch: Graph = body()

    @classmethod
    def only_branch(cls, operands: Sequence[Type | None]) -> str | None:
        known = None if operands[0] is None else operands[0].known
        if known is None or known.size != 1 or known.dtype != bool_:
            return None
        return "then_branch" if known.item() else "else_branch"

    def infer(self, condition: Type, *captured: AnyType) -> tuple[Type, ...]:
        if condition.dtype != bool_:
            raise InvalidOperand(f"expected a bool condition, got {condition.name}")
        sides = [_results(side) for side in (self.then_branch, self.else_branch)]
        if len(sides[0]) != len(sides[1]):
            raise InvalidOperand(
                "expected branches with equally many outputs, "
                f"got {len(sides[0])} and {len(sides[1])}"
            )
        return tuple(either(a, b) for a, b in zip(*sides, strict=True))

    def lower(self, condition: Value, *captured: Value) -> Branch:
        return Branch(condition, self.then_branch, self.else_branch, captured)


@operator
class Loop(Op, onnx="Loop", versions=(1, 11, 13, 16, 19, 21, 23, 24, 25)):
    """At most ``trips`` iterations while ``condition`` holds.

    The further operands are the carried values, then the captured ones.
    """

    body: Graph = body()
    operands: int = 2

    @classmethod
    def flow(
        cls,
        attrs: Mapping[str, Any],
        operands: Sequence[Type | None],
        declared: Sequence[Type],
    ) -> Flow:
        carried = [_given(t).forget() for t in operands[2:]]
        counter = _counter(declared[0].shape if declared else ())
        going = Type(
            bool_, _scalar_shape(declared[1].shape if len(declared) > 1 else ())
        )
        back = {index: index + 1 for index in range(1, 1 + len(carried))}
        return Flow((counter, going, *carried), back)

    def infer(
        self, trips: Type | None, condition: Type | None, *rest: AnyType
    ) -> tuple[Type, ...]:
        if trips is not None and trips.dtype != int64:
            raise InvalidOperand(f"expected an int64 trip count, got {trips.name}")
        if condition is not None and condition.dtype != bool_:
            raise InvalidOperand(f"expected a bool condition, got {condition.name}")
        count = self.operands - 2
        results = _results(self.body)
        if len(results) <= count or results[0].dtype != bool_:
            raise InvalidOperand(
                f"expected its body to give a bool and {count} carried values"
            )
        carried = [self.body.types[name] for name in self.body.inputs[2 : 2 + count]]
        counter = self.body.types[self.body.inputs[0]]
        pieces = [_outside_type(piece, counter) for piece in results[1 + count :]]
        rounds = self._rounds(trips, condition)
        return (*carried, *(_stacked_type(Rows(piece), rounds) for piece in pieces))

    def _rounds(self, trips: Type | None, condition: Type | None) -> Dim | None:
        """Return the number of iterations if the loop cannot end early, else None."""
        if trips is None or trips.known is None or trips.known.size != 1:
            return None
        going = self.body.outputs[0]
        follows = self.body.type(going)
        sure = going == self.body.inputs[1] or _is_true(follows)
        first = condition is None or _is_true(condition)
        count: Dim = trips.known.reshape(-1).tolist()[0]
        bounded = not isinstance(count, int) or 0 <= count < ENDLESS
        return count if sure and first and bounded else None

    def lower(
        self, trips: Value | None, condition: Value | None, *rest: Value
    ) -> Repeat:
        count = self.operands - 2
        pieces = _results(self.body)[1 + count :]
        return Repeat(
            self.body,
            None if _endless(trips) else trips,
            condition,
            rest[:count],
            (),
            tuple(Rows(piece) for piece in pieces),
            rest[count:],
            counted=True,
        )


@operator
class Scan(Op, onnx="Scan", versions=(8, 9, 11, 16, 19, 21, 23, 24, 25)):
    """One iteration for every slice of the last ``num_scan_inputs`` operands."""

    num_scan_inputs: int
    body: Graph = body()
    scan_input_axes: tuple[int, ...] | None = None
    scan_input_directions: tuple[int, ...] | None = None
    scan_output_axes: tuple[int, ...] | None = None
    scan_output_directions: tuple[int, ...] | None = None
    operands: int = 1

    @classmethod
    def flow(
        cls,
        attrs: Mapping[str, Any],
        operands: Sequence[Type | None],
        declared: Sequence[Type],
    ) -> Flow:
        count = len(operands) - int(attrs["num_scan_inputs"])
        if count < 0 or count == len(operands):
            raise InvalidOperand(
                f"expected num_scan_inputs from 1 to {len(operands)}, "
                f"got {attrs['num_scan_inputs']}"
            )
        operand_types = [_given(t) for t in operands]
        axes = _per_input(attrs, "scan_input_axes", len(operands) - count)
        slices = [
            _slice_type(t, axis)
            for t, axis in zip(operand_types[count:], axes, strict=True)
        ]
        types = (*(t.forget() for t in operand_types[:count]), *slices)
        return Flow(types, {index: index for index in range(count)})

    def infer(self, *operands: AnyType) -> tuple[Type, ...]:
        count = self.operands - self.num_scan_inputs
        results = _results(self.body)
        if len(results) < count:
            raise InvalidOperand(f"expected its body to give {count} states or more")
        length = self._length(operands[count : self.operands])
        carried = [self.body.types[name] for name in self.body.inputs[:count]]
        rows = self._rows(results[count:])
        return (*carried, *(_stacked_type(row, length) for row in rows))

    def lower(self, *operands: Value) -> Repeat:
        count = self.operands - self.num_scan_inputs
        axes = _per_input(self.attrs(), "scan_input_axes", self.num_scan_inputs)
        flips = _per_input(self.attrs(), "scan_input_directions", len(axes))
        sliced = zip(operands[count : self.operands], axes, flips, strict=True)
        return Repeat(
            self.body,
            None,
            None,
            operands[:count],
            tuple(Slices(x, _axis(x, axis), bool(way)) for x, axis, way in sliced),
            tuple(self._rows(_results(self.body)[count:])),
            operands[self.operands :],
            counted=False,
        )

    def _rows(self, pieces: Sequence[Type]) -> list[Rows]:
        axes = _per_input(self.attrs(), "scan_output_axes", len(pieces))
        turned = _per_input(self.attrs(), "scan_output_directions", len(pieces))
        return [
            Rows(piece, axis, bool(way))
            for piece, axis, way in zip(pieces, axes, turned, strict=True)
        ]

    def _length(self, scanned: Sequence[Type]) -> Dim | None:
        axes = _per_input(self.attrs(), "scan_input_axes", len(scanned))
        lengths = [
            t.shape[t.axes(axis)[0]]
            for t, axis in zip(scanned, axes, strict=True)
            if t.shape is not None
        ]
        numbers = {length for length in lengths if isinstance(length, int)}
        if len(numbers) > 1:
            raise InvalidOperand(f"expected equally long inputs, got {sorted(numbers)}")
        return next(iter([*numbers, *lengths]), None)


@operator
class SequenceMap(Op, onnx="SequenceMap", versions=(17,)):
    """The subgraph applied to every item; other tensors are loop-invariant."""

    body: Graph = body()
    operands: int = 1

    @classmethod
    def flow(
        cls,
        attrs: Mapping[str, Any],
        operands: Sequence[Type | None],
        declared: Sequence[Type],
    ) -> Flow:
        types = [_given(t) for t in operands]
        return Flow(
            tuple(
                t.element if isinstance(t, SequenceType) else t.forget() for t in types
            )
        )

    def infer(self, sequence: SequenceType, *others: AnyType) -> tuple[Type, ...]:
        return tuple(sequence_of(t) for t in _results(self.body))

    def lower(self, *operands: Value) -> Repeat:
        own = self.operands
        return Repeat(
            self.body,
            None,
            None,
            (),
            tuple(Slices(x, None, whole=not is_sequence(x)) for x in operands[:own]),
            tuple(Rows(piece, None) for piece in _results(self.body)),
            operands[own:],
            counted=False,
        )


def _given(type_: Type | None) -> Type:
    if type_ is None:
        raise InvalidOperand("expected a value to carry, got none")
    return type_


def _scalar_shape(shape: Sequence[Dim] | None) -> tuple[Dim, ...]:
    """Return the shape of a scalar, which is ``(1,)`` in old files."""
    return (1,) if shape is not None and len(shape) == 1 else ()


def _counter(declared: Sequence[Dim] | None) -> Type:
    """Return the type of the iteration number, whose contents are a fresh symbol."""
    shape = _scalar_shape(declared)
    number = np.empty((), object)
    number[()] = unnamed()
    return Type(int64, shape, number.reshape(tuple(1 for _ in shape)))


def _is_true(condition: Type | None) -> bool:
    contents = None if condition is None else condition.known
    return contents is not None and bool(np.asarray(contents).all())


def _endless(trips: Value | None) -> bool:
    if trips is None:
        return True
    try:
        (count,) = static_ints(trips)
    except (Undecided, TypeError):
        return False
    return count >= ENDLESS


def _outside_type(piece: Type, counter: Type) -> Type:
    """Return the type of a piece, without dimensions of one iteration."""
    assert counter.known is not None
    number = str(counter.known.reshape(-1)[0])
    if piece.shape is None or not any(number in symbols(d) for d in piece.shape):
        return piece.forget()
    dims = [unnamed() if number in symbols(d) else d for d in piece.shape]
    return piece.with_shape(dims)


def _stacked_type(row: Rows, length: Dim | None) -> Type:
    """Return the type of equal pieces stacked."""
    piece = row.piece
    if piece.shape is None or row.axis is None:
        return Type(piece.dtype, None)
    rank = len(piece.shape) + 1
    if not -rank <= row.axis < rank:
        raise InvalidOperand(f"expected an output axis below {rank}, got {row.axis}")
    axis = row.axis % rank
    extent = unnamed() if length is None else length
    return piece.with_shape((*piece.shape[:axis], extent, *piece.shape[axis:]))


def _slice_type(type_: Type, axis: int) -> Type:
    """Return the type of a slice, which has one axis less."""
    if type_.shape is None:
        return type_.forget()
    (position,) = type_.axes(axis)
    return type_.with_shape((*type_.shape[:position], *type_.shape[position + 1 :]))


def _axis(x: Value, axis: int) -> int:
    return axis if axis >= 0 else axis + len(x.shape)


def _per_input(attrs: Mapping[str, Any], name: str, count: int) -> Sequence[int]:
    """Return an attribute with a number for each of ``count`` values, default 0."""
    numbers = attrs.get(name) or (0,) * count
    if len(numbers) != count:
        raise InvalidOperand(f"expected {count} numbers in {name}, got {len(numbers)}")
    return tuple(int(n) for n in numbers)


def _results(side: Graph) -> list[Type]:
    return [t for t in map(side.type, side.outputs) if t is not None]
