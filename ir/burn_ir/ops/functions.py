"""Elementwise mathematical functions of one operand."""

from __future__ import annotations

from burn import dtypes, ops
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator


class Unary:
    """Operators that keep the type of their only operand."""

    def infer(self, x: Type) -> Type:
        return x.forget()


class Floating:
    """Operators that keep the type of their only operand, which is floating."""

    def infer(self, x: Type) -> Type:
        return expect_float(x).forget()


def expect_float(x: Type) -> Type:
    """Check that the dtype of ``x`` is floating; return ``x``.

    Raises:
        InvalidOperand: it is not.
    """
    if not dtypes.is_float(x.dtype):
        raise InvalidOperand(f"expected a floating dtype, got {x.name}")
    return x


@operator
class Neg(Unary, Op, onnx="Neg", versions=(1, 6, 13)):
    def lower(self, x: Value) -> Value:
        return -x


@operator
class Abs(Unary, Op, onnx="Abs", versions=(1, 6, 13)):
    def lower(self, x: Value) -> Value:
        return ops.abs(x)


@operator
class Sign(Unary, Op, onnx="Sign", versions=(9, 13)):
    def lower(self, x: Value) -> Value:
        return ops.sign(x)


@operator
class Exp(Floating, Op, onnx="Exp", versions=(1, 6, 13)):
    def lower(self, x: Value) -> Value:
        return ops.exp(x)


@operator
class Log(Floating, Op, onnx="Log", versions=(1, 6, 13)):
    def lower(self, x: Value) -> Value:
        return ops.log(x)


@operator
class Sqrt(Floating, Op, onnx="Sqrt", versions=(1, 6, 13)):
    def lower(self, x: Value) -> Value:
        return ops.sqrt(x)


@operator
class Reciprocal(Floating, Op, onnx="Reciprocal", versions=(1, 6, 13)):
    def lower(self, x: Value) -> Value:
        return ops.reciprocal(x)


@operator
class Floor(Floating, Op, onnx="Floor", versions=(1, 6, 13)):
    def lower(self, x: Value) -> Value:
        return ops.floor(x)


@operator
class Ceil(Floating, Op, onnx="Ceil", versions=(1, 6, 13)):
    def lower(self, x: Value) -> Value:
        return ops.ceil(x)


@operator
class Round(Floating, Op, onnx="Round", versions=(11, 22)):
    def lower(self, x: Value) -> Value:
        return ops.round(x)


@operator
class Erf(Unary, Op, onnx="Erf", versions=(9, 13)):
    def lower(self, x: Value) -> Value:
        return ops.erf(x)


@operator
class Sin(Floating, Op, onnx="Sin", versions=(7, 22)):
    def lower(self, x: Value) -> Value:
        return ops.sin(x)


@operator
class Cos(Floating, Op, onnx="Cos", versions=(7, 22)):
    def lower(self, x: Value) -> Value:
        return ops.cos(x)


@operator
class Tan(Floating, Op, onnx="Tan", versions=(7, 22)):
    def lower(self, x: Value) -> Value:
        return ops.tan(x)


@operator
class Asin(Floating, Op, onnx="Asin", versions=(7, 22)):
    def lower(self, x: Value) -> Value:
        return ops.asin(x)


@operator
class Acos(Floating, Op, onnx="Acos", versions=(7, 22)):
    def lower(self, x: Value) -> Value:
        return ops.acos(x)


@operator
class Atan(Floating, Op, onnx="Atan", versions=(7, 22)):
    def lower(self, x: Value) -> Value:
        return ops.atan(x)


@operator
class Sinh(Floating, Op, onnx="Sinh", versions=(9, 22)):
    def lower(self, x: Value) -> Value:
        return ops.sinh(x)


@operator
class Cosh(Floating, Op, onnx="Cosh", versions=(9, 22)):
    def lower(self, x: Value) -> Value:
        return ops.cosh(x)


@operator
class Asinh(Floating, Op, onnx="Asinh", versions=(9, 22)):
    def lower(self, x: Value) -> Value:
        return ops.asinh(x)


@operator
class Acosh(Floating, Op, onnx="Acosh", versions=(9, 22)):
    def lower(self, x: Value) -> Value:
        return ops.acosh(x)


@operator
class Atanh(Floating, Op, onnx="Atanh", versions=(9, 22)):
    def lower(self, x: Value) -> Value:
        return ops.atanh(x)
