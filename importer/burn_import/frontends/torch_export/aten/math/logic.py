"""Comparisons, logical and bitwise operators, and selections."""

from collections.abc import Callable

import numpy as np

from burn.dtypes import name_of
from burn_import.frontends.torch_export.builder import (
    BOOL,
    FLOAT32,
    INT64,
    Builder,
    Operand,
    Value,
    kind_of,
)
from burn_import.frontends.torch_export.registry import Rule, rule
from burn_ir import InvalidModel

INT8 = np.dtype("int8")


def comparison(op_type: str) -> Rule:
    """Return the rule of a comparison in the promoted dtype of the operands."""

    def apply(g: Builder, self: Operand, other: Operand) -> Value:
        a, b = g.common(self, other)
        of = g.at(BOOL)
        if a.dtype == BOOL and op_type not in ("Equal", "NotEqual"):
            a, b = (g.cast(x, INT8) for x in (a, b))
        if op_type == "NotEqual":
            return g.cast(of.op("Not", of.op("Equal", a, b)))
        return g.cast(of.op(op_type, a, b))  # the in-place form keeps the dtype of self

    return apply


for _name, _op in {
    "eq": "Equal",
    "ne not_equal": "NotEqual",
    "lt less": "Less",
    "le less_equal": "LessOrEqual",
    "gt greater": "Greater",
    "ge greater_equal": "GreaterOrEqual",
}.items():
    _rule = comparison(_op)
    rule(f"_operator.{_name[:2]}")(_rule)
    for _alias in _name.split():
        rule(f"aten.{_alias}.Tensor", f"aten.{_alias}.Scalar")(_rule)


def is_nonzero(g: Builder, x: Operand) -> Value:
    """Return a mask of the elements of ``x`` that are not zero."""
    if isinstance(x, Value) and x.dtype == BOOL:
        return x
    return g.cast(x if isinstance(x, Value) else bool(x), BOOL)


def logical(op_type: str) -> Rule:
    """Return the rule of a logical operator."""

    def apply(g: Builder, self: Value, other: Value) -> Value:
        return g.cast(g.at(BOOL).op(op_type, is_nonzero(g, self), is_nonzero(g, other)))

    return apply


def bitwise(plain: str) -> Callable[..., Value]:
    """Return the rule of a bitwise operator, which is logical for bools."""

    def apply(g: Builder, self: Operand, other: Operand) -> Value:
        op_type = plain if g.dtype == BOOL else f"Bitwise{plain}"
        return g.op(op_type, g.cast(self), g.cast(other))

    return apply


for _name, _op in {"and": "And", "or": "Or", "xor": "Xor"}.items():
    rule(f"aten.logical_{_name}.default")(logical(_op))
    rule(
        f"aten.bitwise_{_name}.Tensor",
        f"aten.bitwise_{_name}.Scalar",
        f"aten.bitwise_{_name}.Scalar_Tensor",
        f"aten.__{_name}__.Tensor",
        f"aten.__{_name}__.Scalar",
        f"_operator.{_name}_",
    )(bitwise(_op))


@rule("aten.logical_not.default", "_operator.not_", "torch.sym_not")
def logical_not(g: Builder, self: Value) -> Value:
    return g.cast(g.at(BOOL).op("Not", is_nonzero(g, self)))


@rule("aten.bitwise_not.default")
def bitwise_not(g: Builder, self: Value) -> Value:
    return g.op("Not" if g.dtype == BOOL else "BitwiseNot", self)


def shift(direction: str) -> Rule:
    """Return the rule of a shift; signed numbers keep the sign."""

    def apply(g: Builder, self: Operand, other: Operand) -> Value:
        x, count = g.cast(self), g.cast(other)
        if g.dtype.kind == "u":
            return g.op("BitShift", x, count, direction=direction)
        factor = g.op("Pow", g.cast(2), count)
        if direction == "LEFT":
            return g.op("Mul", x, factor)
        return g.op("FloorDiv", x, factor, domain="burn")

    return apply


for _name, _dunder in {"left": "l", "right": "r"}.items():
    rule(
        f"aten.bitwise_{_name}_shift.Tensor",
        f"aten.bitwise_{_name}_shift.Tensor_Scalar",
        f"aten.bitwise_{_name}_shift.Scalar_Tensor",
        f"aten.__{_dunder}shift__.Scalar",
        f"aten.__{_dunder}shift__.Tensor",
    )(shift(_name.upper()))


@rule("aten.isnan.default")
def isnan(g: Builder, self: Value) -> Value:
    if kind_of(self.dtype) < kind_of(FLOAT32):
        return g.op("Not", g.op("Equal", self, self))
    return g.op("IsNaN", self)


def infinite(negative: int = 1, positive: int = 1) -> Rule:
    """Return the rule of a test for infinity of given signs; False for integers."""

    def apply(g: Builder, self: Value) -> Value:
        if kind_of(self.dtype) < kind_of(FLOAT32):
            return g.op("Not", g.op("Equal", self, self))
        return g.op("IsInf", self, detect_negative=negative, detect_positive=positive)

    return apply


rule("aten.isinf.default")(infinite())
rule("aten.isposinf.default")(infinite(negative=0))


@rule("aten.isreal.default")
def isreal(g: Builder, self: Value) -> Value:
    """Return true for each element: complex numbers have a rule of their own."""
    shape = g.at(INT64).op("Shape", self)
    return g.op("ConstantOfShape", shape, value=np.ones([1], np.bool_))


rule("aten.isneginf.default")(infinite(positive=0))


@rule("aten.isfinite.default")
def isfinite(g: Builder, self: Value) -> Value:
    if kind_of(self.dtype) < kind_of(FLOAT32):
        return g.op("Equal", self, self)
    return g.op("Less", g.at(self.dtype).op("Abs", self), np.inf)


@rule("aten.signbit.default")
def signbit(g: Builder, self: Value) -> Value:
    """Return whether numbers have a minus sign, as the zero -0.0 has."""
    negative = g.op("Less", self, 0)
    if kind_of(self.dtype) < kind_of(FLOAT32):
        return negative
    below = g.op("Less", g.at(self.dtype).op("Reciprocal", self), 0)
    return g.op("Where", g.op("Equal", self, 0), below, negative)


@rule(
    "aten.where.self",
    "aten.where.ScalarSelf",
    "aten.where.ScalarOther",
    "aten.where.Scalar",
    "torch.sym_ite",
)
def where(g: Builder, condition: Value, self: Operand, other: Operand) -> Value:
    """Select by a condition of bools, or of bytes in old programs."""
    if isinstance(condition, Value) and condition.dtype.name not in ("bool", "uint8"):
        name = name_of(condition.dtype)
        raise InvalidModel(f"expected a condition of bool, got {name}")
    return g.op("Where", is_nonzero(g, condition), g.cast(self), g.cast(other))


@rule("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(g: Builder, self: Value, mask: Value, value: Operand) -> Value:
    return g.op("Where", mask, g.cast(value), self)


@rule("aten.isclose.default")
def isclose(
    g: Builder,
    self: Value,
    other: Value,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Value:
    a, b = g.common(self, other)
    if kind_of(a.dtype) < kind_of(FLOAT32):
        a, b = (g.cast(x, np.dtype("float64")) for x in (a, b))
    of = g.at(a.dtype)
    distance = of.op("Abs", of.op("Sub", a, b))
    allowed = of.op("Add", of.op("Mul", of.op("Abs", b), float(rtol)), float(atol))
    finite = g.op("Less", distance, float("inf"))
    near = g.op("And", g.op("LessOrEqual", distance, allowed), finite)
    close = g.op("Or", g.op("Equal", a, b), near)
    if not equal_nan:
        return close
    return g.op("Or", close, g.op("And", g.op("IsNaN", a), g.op("IsNaN", b)))
