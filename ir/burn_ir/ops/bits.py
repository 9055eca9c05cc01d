"""Bitwise operators on integers."""

from __future__ import annotations

from burn import dtypes, ops
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.elementwise import same_dtype
from burn_ir.types import broadcast


class Bits:
    """Operators on two integer operands of one dtype."""

    def infer(self, x: Type, y: Type) -> Type:
        same_dtype(x, y)
        return Type(expect_integer(x).dtype, broadcast(x, y))


def expect_integer(x: Type) -> Type:
    """Check that ``x`` holds integers; return it.

    Raises:
        InvalidOperand: it does not.
    """
    if not dtypes.is_integer(x.dtype):
        raise InvalidOperand(f"expected an integer dtype, got {x.name}")
    return x


@operator
class BitwiseAnd(Bits, Op, onnx="BitwiseAnd", versions=(18,)):
    def lower(self, x: Value, y: Value) -> Value:
        return ops.bitwise_and(x, y)


@operator
class BitwiseOr(Bits, Op, onnx="BitwiseOr", versions=(18,)):
    def lower(self, x: Value, y: Value) -> Value:
        return ops.bitwise_or(x, y)


@operator
class BitwiseXor(Bits, Op, onnx="BitwiseXor", versions=(18,)):
    def lower(self, x: Value, y: Value) -> Value:
        return ops.bitwise_xor(x, y)


@operator
class BitwiseNot(Op, onnx="BitwiseNot", versions=(18,)):
    def infer(self, x: Type) -> Type:
        return expect_integer(x).forget()

    def lower(self, x: Value) -> Value:
        return ops.bitwise_not(x)


@operator
class BitShift(Bits, Op, onnx="BitShift", versions=(11, 28)):
    direction: str

    def __post_init__(self) -> None:
        if self.direction not in ("LEFT", "RIGHT"):
            raise InvalidOperand(
                f"expected direction 'LEFT' or 'RIGHT', got {self.direction!r}"
            )

    def lower(self, x: Value, y: Value) -> Value:
        if self.direction == "LEFT":
            return ops.bitwise_left_shift(x, y)
        return ops.bitwise_right_shift(x, y)
