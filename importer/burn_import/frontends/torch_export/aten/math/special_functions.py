"""Functions of two numbers that are composed of others."""

from __future__ import annotations

import math

from burn_import.frontends.torch_export.builder import (
    FLOAT32,
    Builder,
    Operand,
    Value,
    kind_of,
    promoted,
)
from burn_import.frontends.torch_export.registry import rule


@rule("aten.atan2.default", "aten.arctan2.default")
def atan2(g: Builder, self: Value, other: Value) -> Value:
    """The angle of a point ``(other, self)``; 0 at the origin."""
    y, x = g.cast(self), g.cast(other)
    angle = g.op("Atan", g.op("Div", y, x))
    around = g.op("Where", g.op("Less", y, 0), g.cast(-math.pi), g.cast(math.pi))
    turned = g.op("Where", g.op("Less", x, 0), g.op("Add", angle, around), angle)
    return g.op("Where", g.op("Equal", y, 0), _on_axis(g, x), turned)


def _on_axis(g: Builder, x: Value) -> Value:
    return g.op("Where", g.op("Less", x, 0), g.cast(math.pi), g.cast(0))


@rule("aten.atan2.out", mutates="out")
def atan2_out(g: Builder, self: Value, other: Value, out: Value) -> Value:
    """The angle as it is without ``out``, in the dtype of that."""
    dtype = promoted((self, other))
    is_whole = kind_of(dtype) < kind_of(FLOAT32)
    return g.cast(atan2(g.at(FLOAT32 if is_whole else dtype), self, other))


@rule("aten.xlogy.Tensor", "aten.xlogy.Scalar_Other", "aten.xlogy.Scalar_Self")
@rule("aten.special_xlogy.default")
def xlogy(g: Builder, self: Operand, other: Operand) -> Value:
    x, y = g.cast(self), g.cast(other)
    product = g.op("Mul", x, g.op("Log", y))
    product = g.op("Where", g.op("Equal", x, 0), g.cast(0), product)
    return g.op("Where", g.op("IsNaN", y), y, product)


@rule("aten.special_xlog1py.default")
def xlog1py(g: Builder, self: Operand, other: Operand) -> Value:
    return xlogy(g, self, g.op("Add", g.cast(other), 1))


@rule("aten.logaddexp.default")
def logaddexp(g: Builder, self: Value, other: Value) -> Value:
    a, b = g.cast(self), g.cast(other)
    distance = g.op("Abs", g.op("Sub", a, b))
    rest = g.op("Log", g.op("Add", g.op("Exp", g.op("Neg", distance)), 1))
    return g.op("Add", g.op("Max", a, b), rest)


@rule("aten.logaddexp2.default")
def logaddexp2(g: Builder, self: Value, other: Value) -> Value:
    a, b = (g.op("Mul", g.cast(x), math.log(2)) for x in (self, other))
    return g.op("Div", logaddexp(g, a, b), math.log(2))


@rule("aten.hypot.default")
def hypot(g: Builder, self: Value, other: Value) -> Value:
    squares = [g.op("Mul", x, x) for x in (g.cast(self), g.cast(other))]
    return g.op("Sqrt", g.op("Add", *squares))


@rule("aten.copysign.Tensor", "aten.copysign.Scalar")
def copysign(g: Builder, self: Value, other: Operand) -> Value:
    size = g.op("Abs", g.cast(self))
    negative = g.op("Less", g.cast(other), 0)
    return g.op("Where", negative, g.op("Neg", size), size)


@rule("aten.heaviside.default")
def heaviside(g: Builder, self: Value, values: Value) -> Value:
    above = g.op("Where", g.op("Greater", self, 0), g.cast(1), g.cast(0))
    return g.op("Where", g.op("Equal", self, 0), values, above)
