"""Arithmetic, comparisons and functions of each element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burn_import.exported.builder import BOOL, Builder, Operand, Value, kind_of
from burn_import.exported.table import Rule, rule


def binary(op_type: str) -> Rule:
    """The rule of an operator whose operands have the dtype of the result."""

    def apply(g: Builder, self: Operand, other: Operand) -> Value:
        return g.op(op_type, g.cast(self), g.cast(other))

    return apply


def unary(op_type: str) -> Rule:
    """The rule of a function of the result's dtype."""

    def apply(g: Builder, self: Operand) -> Value:
        return g.op(op_type, g.cast(self))

    return apply


def comparison(op_type: str) -> Rule:
    """The rule of an operator that compares in the dtype operands promote to."""

    def apply(g: Builder, self: Operand, other: Operand) -> Value:
        a, b = g.common(self, other)
        if a.dtype == BOOL and op_type not in ("Equal", "NotEqual"):
            a, b = (g.cast(x, INT8) for x in (a, b))
        if op_type == "NotEqual":
            return g.op("Not", g.op("Equal", a, b))
        return g.op(op_type, a, b)

    return apply


def scaled(op_type: str) -> Rule:
    """The rule of ``self + alpha * other``."""

    def apply(g: Builder, self: Operand, other: Operand, alpha: Any = 1) -> Value:
        right = g.cast(other)
        if alpha != 1:
            right = g.op("Mul", right, g.constant(alpha, g.dtype))
        return g.op(op_type, g.cast(self), right)

    return apply


INT8 = np.dtype("int8")

for _name, _op in {"add": "Add", "sub": "Sub"}.items():
    rule(f"aten.{_name}.Tensor", f"aten.{_name}.Scalar")(scaled(_op))
for _name, _op in {"mul": "Mul", "div": "Div", "maximum": "Max"}.items():
    _targets = [f"aten.{_name}.Tensor", f"aten.{_name}.Scalar"]
    rule(*(_targets if _name != "maximum" else ["aten.maximum.default"]))(binary(_op))
rule("aten.minimum.default")(binary("Min"))
rule("_operator.add")(scaled("Add"))
rule("_operator.sub")(scaled("Sub"))
rule("_operator.mul")(binary("Mul"))
rule("_operator.truediv")(binary("Div"))
rule("_operator.pow")(binary("Pow"))

for _name, _op in {
    "eq": "Equal",
    "ne": "NotEqual",
    "lt": "Less",
    "le": "LessOrEqual",
    "gt": "Greater",
    "ge": "GreaterOrEqual",
}.items():
    rule(f"aten.{_name}.Tensor", f"aten.{_name}.Scalar", f"_operator.{_name}")(
        comparison(_op)
    )

for _name, _op in {
    "abs": "Abs",
    "neg": "Neg",
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "sin": "Sin",
    "cos": "Cos",
    "tan": "Tan",
    "asin": "Asin",
    "acos": "Acos",
    "atan": "Atan",
    "sinh": "Sinh",
    "cosh": "Cosh",
    "asinh": "Asinh",
    "acosh": "Acosh",
    "atanh": "Atanh",
    "erf": "Erf",
    "ceil": "Ceil",
    "floor": "Floor",
    "round": "Round",
    "sign": "Sign",
    "reciprocal": "Reciprocal",
}.items():
    rule(f"aten.{_name}.default")(unary(_op))


@rule("aten.rsqrt.default")
def rsqrt(g: Builder, self: Operand) -> Value:
    return g.op("Reciprocal", g.op("Sqrt", g.cast(self)))


@rule("aten.pow.Tensor_Scalar")
def pow_scalar(g: Builder, self: Value, exponent: Any) -> Value:
    return g.op("Pow", g.cast(self), g.constant(exponent, g.dtype))


@rule("aten.pow.Tensor_Tensor")
def pow_tensor(g: Builder, self: Value, exponent: Value) -> Value:
    return g.op("Pow", g.cast(self), g.cast(exponent))


@rule("aten.pow.Scalar")
def pow_of_scalar(g: Builder, self: Any, exponent: Value) -> Value:
    return g.op("Pow", g.constant(self, g.dtype), g.cast(exponent))


def logical(plain: str, bitwise: str) -> Callable[..., Value]:
    """The rule of an operator on bits, which is logical for bools."""

    def apply(g: Builder, self: Operand, other: Operand) -> Value:
        a, b = g.cast(self), g.cast(other)
        return g.op(plain if g.dtype == BOOL else bitwise, a, b)

    return apply


for _name, _op in {"and": "And", "or": "Or", "xor": "Xor"}.items():
    rule(
        f"aten.bitwise_{_name}.Tensor",
        f"aten.bitwise_{_name}.Scalar",
        f"aten.__{_name}__.Tensor",
        f"aten.__{_name}__.Scalar",
        f"_operator.{_name}_",
    )(logical(_op, f"Bitwise{_op}"))


@rule("aten.logical_not.default")
def logical_not(g: Builder, self: Value) -> Value:
    return g.op("Not", truth(g, self))


@rule("aten.bitwise_not.default")
def bitwise_not(g: Builder, self: Value) -> Value:
    return g.op("Not" if g.dtype == BOOL else "BitwiseNot", self)


def truth(g: Builder, x: Value) -> Value:
    """Where ``x`` is not zero."""
    if x.dtype == BOOL:
        return x
    made = g.op("Cast", x, to=9)
    return Value(made.name, BOOL, x.dims)


for _name, _op in {"and": "And", "or": "Or", "xor": "Xor"}.items():

    def _logical(g: Builder, self: Value, other: Value, _op: str = _op) -> Value:
        return g.op(_op, truth(g, self), truth(g, other))

    rule(f"aten.logical_{_name}.default")(_logical)


@rule("aten.where.self")
def where(g: Builder, condition: Value, self: Operand, other: Operand) -> Value:
    return g.op("Where", condition, g.cast(self), g.cast(other))


@rule("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(g: Builder, self: Value, mask: Value, value: Operand) -> Value:
    return g.op("Where", mask, g.cast(value), self)


@rule("aten.clamp.default")
def clamp(g: Builder, self: Value, min: Any = None, max: Any = None) -> Value:
    low, high = (None if x is None else g.constant(x, g.dtype) for x in (min, max))
    return g.op("Clip", g.cast(self), low, high)


@rule("aten.clamp_min.default")
def clamp_min(g: Builder, self: Value, min: Any) -> Value:
    return clamp(g, self, min)


@rule(
    "aten.to.dtype",
    "aten.to.dtype_layout",
    "aten.to.device",
    "aten._to_copy.default",
    "aten.type_as.default",
)
def to(g: Builder, self: Value, dtype: Any = None, other: Any = None) -> Value:
    if self.dtype == g.dtype:
        return self
    return g.cast(truth(g, self) if kind_of(g.dtype) == 0 else self)


@rule("aten.clone.default", "aten.alias.default", "aten.detach.default")
def same(g: Builder, self: Value) -> Value:
    return self


@rule("aten.contiguous.default", "aten.lift_fresh_copy.default")
def contiguous(g: Builder, self: Value) -> Value:
    return self
