"""Sequences, which are Python lists, and optional values, which may be None."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from burn import dtypes, ops
from burn.dtypes import bool_, int64
from burn_ir.containers import (
    AnyType,
    OptionalType,
    SequenceType,
    optional_of,
    sequence_of,
    widen,
)
from burn_ir.dim import unnamed
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.support import dims_of, element_type, ints_of
from burn_ir.static import is_optional

#: The default element dtype of an empty sequence.
FLOAT = 1


@operator
class SequenceEmpty(Op, onnx="SequenceEmpty", versions=(11,)):
    dtype: int | None = None

    def infer(self) -> Type:
        return sequence_of(Type(element_type(self.dtype or FLOAT)))

    def lower(self) -> Value:
        return ops.sequence([])


@operator
class SequenceConstruct(Op, onnx="SequenceConstruct", versions=(11,)):
    def infer(self, *inputs: Type) -> Type:
        return sequence_of(_common(inputs))

    def lower(self, *inputs: Value) -> Value:
        return ops.sequence(list(inputs))


@operator
class SequenceAt(Op, onnx="SequenceAt", versions=(11,)):
    def infer(self, sequence: SequenceType, position: Type) -> Type:
        _check_position(position)
        return sequence.element

    def lower(self, sequence: Value, position: Value) -> Value:
        return ops.sequence_at(sequence, _number(position))


@operator
class SequenceInsert(Op, onnx="SequenceInsert", versions=(11,)):
    def infer(
        self, sequence: SequenceType, item: Type, position: Type | None = None
    ) -> Type:
        if position is not None:
            _check_position(position)
        return sequence_of(_common([sequence.element, item]))

    def lower(self, sequence: Value, item: Value, position: Value = None) -> Value:
        if position is None:
            return ops.sequence_joined(sequence, ops.sequence([item]))
        return ops.sequence_insert(sequence, item, _number(position))


@operator
class SequenceErase(Op, onnx="SequenceErase", versions=(11,)):
    def infer(self, sequence: SequenceType, position: Type | None = None) -> Type:
        if position is not None:
            _check_position(position)
        return sequence

    def lower(self, sequence: Value, position: Value = None) -> Value:
        if position is None:
            return ops.sequence_erase(sequence)
        return ops.sequence_erase(sequence, _number(position))


@operator
class SequenceLength(Op, onnx="SequenceLength", versions=(11,)):
    def infer(self, sequence: SequenceType) -> Type:
        return Type(int64, ())

    def lower(self, sequence: Value) -> Value:
        return ops.sequence_length(sequence)


@operator
class SplitToSequence(Op, onnx="SplitToSequence", versions=(11, 24)):
    axis: int = 0
    keepdims: int = 1

    def infer(self, x: Type, split: Type | None = None) -> Type:
        if split is not None and not dtypes.is_integer(split.dtype):
            raise InvalidOperand(f"expected integer sizes, got {split.name}")
        if x.shape is None:
            return sequence_of(x)
        (axis,) = x.axes(self.axis)
        dims = list(x.shape)
        if split is not None:
            dims[axis] = unnamed()
        elif self.keepdims:
            dims[axis] = 1
        else:
            del dims[axis]
        return sequence_of(x.with_shape(dims))

    def lower(self, x: Value, split: Value = None) -> Value:
        if split is None:
            return ops.split_to_sequence(x, 1, self.axis, keepdims=bool(self.keepdims))
        sizes = ints_of(split)
        if sizes is not None and len(sizes) == 1 and not split.shape:
            return ops.split_to_sequence(x, sizes[0], self.axis)
        return ops.split_to_sequence(x, split if sizes is None else sizes, self.axis)


@operator
class ConcatFromSequence(Op, onnx="ConcatFromSequence", versions=(11,)):
    axis: int
    new_axis: int = 0

    def infer(self, sequence: SequenceType) -> Type:
        element = sequence.element
        if element.shape is None:
            return element
        dims = list(element.shape)
        rank = len(dims) + bool(self.new_axis)
        if not -rank <= self.axis < rank:
            raise InvalidOperand(f"expected an axis below {rank}, got {self.axis}")
        axis = self.axis % rank
        if self.new_axis:
            dims.insert(axis, unnamed())
        else:
            dims[axis] = unnamed()
        return element.with_shape(dims)

    def lower(self, sequence: Value) -> Value:
        join = ops.stack if self.new_axis else ops.concat
        return join(sequence) if self.axis == 0 else join(sequence, axis=self.axis)


@operator
class Optional(Op, onnx="Optional", versions=(15, 28)):
    type: Type | None = None

    def infer(self, value: AnyType | None = None) -> Type:
        if value is not None:
            return optional_of(value)
        if self.type is None:
            raise InvalidOperand("expected a value, or the type of one that is absent")
        return optional_of(self.type)

    def lower(self, value: Value = None) -> Value:
        return ops.absent() if value is None else value


@operator
class OptionalHasElement(Op, onnx="OptionalHasElement", versions=(15, 18, 28)):
    def infer(self, value: AnyType | None = None) -> Type:
        return Type(bool_, ())

    def lower(self, value: Value = None) -> Value:
        return ops.has_element(value)


@operator
class OptionalGetElement(Op, onnx="OptionalGetElement", versions=(15, 18, 28)):
    def infer(self, value: AnyType) -> Type:
        return value.element if isinstance(value, OptionalType) else value

    def lower(self, value: Value) -> Value:
        return ops.element(value) if is_optional(value) else value


def _common(types: Sequence[Type]) -> Type:
    """Return the type of a list's items, with differing dimensions unnamed."""
    return reduce(widen, types).forget()


def _check_position(position: Type) -> None:
    if position.dtype not in (dtypes.int32, int64):
        raise InvalidOperand(f"expected an integer position, got {position.name}")


def _number(position: Value) -> Value:
    """Return a position as a number if it is known or is a loop counter."""
    numbers = dims_of(position)
    return position if numbers is None else numbers[0]
