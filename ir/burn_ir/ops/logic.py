"""Comparisons, logical operators and selection."""

from __future__ import annotations

from typing import Literal

from burn import dtypes, ops
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.elementwise import broadcast_attribute, same_dtype
from burn_ir.types import broadcast


class Comparison:
    """Comparison operators on two operands of one dtype."""

    def infer(self, x: Type, y: Type) -> Type:
        same_dtype(x, y)
        return Type(dtypes.bool_, broadcast(x, y))


class Connective:
    """Logical operators on two bools."""

    def infer(self, x: Type, y: Type) -> Type:
        return Type(expect_bool(x, y), broadcast(x, y))


def expect_bool(*types: Type) -> dtypes.DType:
    """Check that all operands are bools; return the dtype bool.

    Raises:
        InvalidOperand: one is not.
    """
    for x in types:
        if x.dtype != dtypes.bool_:
            raise InvalidOperand(f"expected dtype bool, got {x.name}")
    return dtypes.bool_


@operator
class And(Connective, Op, onnx="And", versions=(1, 7)):
    def lower(self, x: Value, y: Value) -> Value:
        return x & y


@operator
class Or(Connective, Op, onnx="Or", versions=(1, 7)):
    def lower(self, x: Value, y: Value) -> Value:
        return x | y


@operator
class Xor(Connective, Op, onnx="Xor", versions=(1, 7)):
    def lower(self, x: Value, y: Value) -> Value:
        return x ^ y


@operator
class Equal(Comparison, Op, onnx="Equal", versions=(1, 7, 11, 13, 19)):
    def lower(self, x: Value, y: Value) -> Value:
        return x == y


@operator
class Less(Comparison, Op, onnx="Less", versions=(1, 7, 9, 13)):
    def lower(self, x: Value, y: Value) -> Value:
        return x < y


@operator
class Greater(Comparison, Op, onnx="Greater", versions=(1, 7, 9, 13)):
    def lower(self, x: Value, y: Value) -> Value:
        return x > y


@operator
class LessOrEqual(Comparison, Op, onnx="LessOrEqual", versions=(12, 16)):
    def lower(self, x: Value, y: Value) -> Value:
        return x <= y


@operator
class GreaterOrEqual(Comparison, Op, onnx="GreaterOrEqual", versions=(12, 16)):
    def lower(self, x: Value, y: Value) -> Value:
        return x >= y


for _declared in (And, Or, Xor, Equal, Less, Greater):
    _declared.upgrade(1)(broadcast_attribute)


@operator
class Not(Op, onnx="Not", versions=(1,)):
    def infer(self, x: Type) -> Type:
        return Type(expect_bool(x), x.shape)

    def lower(self, x: Value) -> Value:
        return ~x


@operator
class Where(Op, onnx="Where", versions=(9, 16)):
    def infer(self, condition: Type, x: Type, y: Type) -> Type:
        expect_bool(condition)
        return Type(same_dtype(x, y), broadcast(condition, x, y))

    def lower(self, condition: Value, x: Value, y: Value) -> Value:
        return ops.where(condition, x, y)


@operator
class IsNaN(Op, onnx="IsNaN", versions=(9, 13, 20)):
    def infer(self, x: Type) -> Type:
        return x.with_dtype(dtypes.bool_)

    def lower(self, x: Value) -> Value:
        return ops.isnan(x)


@operator
class IsInf(Op, onnx="IsInf", versions=(10, 20)):
    detect_negative: Literal[0, 1] = 1
    detect_positive: Literal[0, 1] = 1

    def infer(self, x: Type) -> Type:
        return x.with_dtype(dtypes.bool_)

    def lower(self, x: Value) -> Value:
        infinite = ops.isinf(x)
        if not self.detect_negative:
            infinite = infinite & (x > 0)
        return infinite if self.detect_positive else infinite & (x < 0)
