"""Elementwise functions."""

import math
from typing import Any

import numpy as np
from ml_dtypes import finfo

from burn_import.frontends.torch_export.aten.math.arithmetic import into_out
from burn_import.frontends.torch_export.builder import (
    BOOL,
    FLOAT32,
    Builder,
    Operand,
    Value,
    kind_of,
)
from burn_import.frontends.torch_export.registry import Rule, rule


def unary(op_type: str) -> Rule:
    """Return the rule of a function with operand and result of one dtype."""

    def apply(g: Builder, self: Operand) -> Value:
        return g.op(op_type, g.cast(self))

    return apply


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
    "reciprocal": "Reciprocal",
}.items():
    rule(f"aten.{_name}.default")(unary(_op))
    _rule = into_out(unary(_op), is_float=_name not in ("abs", "neg"))
    rule(f"aten.{_name}.out", mutates="out")(_rule)
for _name, _op in {
    "absolute": "Abs",
    "negative": "Neg",
    "arcsin": "Asin",
    "arccos": "Acos",
    "arctan": "Atan",
    "arcsinh": "Asinh",
    "arccosh": "Acosh",
    "arctanh": "Atanh",
    "special_erf": "Erf",
    "special_expit": "Sigmoid",
}.items():
    rule(f"aten.{_name}.default")(unary(_op))


@rule("aten.sign.default", "aten.sgn.default")
def sign(g: Builder, self: Value) -> Value:
    """Return -1, 0 or 1; a bool is its own sign."""
    return self if self.dtype == BOOL else g.op("Sign", g.cast(self))


def rounding(op_type: str, domain: str = "") -> Rule:
    """Return the rule of a rounding function, the identity for integers."""

    def apply(g: Builder, self: Value) -> Value:
        if kind_of(self.dtype) < kind_of(FLOAT32):
            return self
        return g.op(op_type, self, domain=domain)

    return apply


rule("aten.ceil.default")(rounding("Ceil"))
rule("aten.floor.default")(rounding("Floor"))
rule("aten.round.default")(rounding("Round"))
rule("aten.trunc.default", "aten.fix.default")(rounding("Trunc", "burn"))


@rule("aten.round.decimals")
def round_decimals(g: Builder, self: Value, decimals: int = 0) -> Value:
    factor = float(10**decimals)
    return g.op("Div", g.op("Round", g.op("Mul", self, factor)), factor)


@rule("aten.frac.default")
def frac(g: Builder, self: Value) -> Value:
    return g.op("Mod", self, 1, fmod=1)


@rule("aten.rsqrt.default")
def rsqrt(g: Builder, self: Operand) -> Value:
    return g.op("Reciprocal", g.op("Sqrt", g.cast(self)))


@rule("aten.square.default")
def square(g: Builder, self: Value) -> Value:
    return g.op("Mul", self, self)


@rule("aten.positive.default", is_alias=True)
def positive(g: Builder, self: Value) -> Value:
    return self


@rule("aten.exp2.default", "aten.special_exp2.default")
def exp2(g: Builder, self: Value) -> Value:
    return g.op("Pow", g.cast(2), g.cast(self))


@rule("aten.expm1.default", "aten.special_expm1.default")
def expm1(g: Builder, self: Value) -> Value:
    return g.op("Expm1", g.cast(self), domain="burn")


@rule("aten.log1p.default", "aten.special_log1p.default")
def log1p(g: Builder, self: Value) -> Value:
    return g.op("Log1p", g.cast(self), domain="burn")


def logarithm(base: float) -> Rule:
    """Return the rule of a logarithm."""

    def apply(g: Builder, self: Value) -> Value:
        return g.op("Div", g.op("Log", g.cast(self)), math.log(base))

    return apply


rule("aten.log2.default")(logarithm(2))
rule("aten.log10.default")(logarithm(10))


def multiple(factor: float) -> Rule:
    """Return the rule of a multiplication by a constant (a change of unit)."""

    def apply(g: Builder, self: Value) -> Value:
        return g.op("Mul", g.cast(self), factor)

    return apply


rule("aten.deg2rad.default")(multiple(math.pi / 180))
rule("aten.rad2deg.default")(multiple(180 / math.pi))


@rule("aten.erfc.default", "aten.special_erfc.default")
def erfc(g: Builder, self: Value) -> Value:
    return g.op("Sub", g.cast(1), g.op("Erf", g.cast(self)))


@rule("aten.sinc.default", "aten.special_sinc.default")
def sinc(g: Builder, self: Value) -> Value:
    x = g.op("Mul", g.cast(self), math.pi)
    zero = g.op("Equal", x, 0)
    share = g.op("Div", g.op("Sin", x), g.op("Where", zero, g.cast(1), x))
    return g.op("Where", zero, g.cast(1), share)


@rule("aten.logit.default", "aten.special_logit.default")
def logit(g: Builder, self: Value, eps: float | None = None) -> Value:
    x = g.cast(self)
    if eps is not None:
        x = g.op("Clip", x, float(eps), 1 - float(eps))
    return g.op("Log", g.op("Div", x, g.op("Sub", g.cast(1), x)))


@rule("aten.nan_to_num.default")
def nan_to_num(
    g: Builder,
    self: Value,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Value:
    if kind_of(self.dtype) < kind_of(FLOAT32):
        return self
    bounds = float(info(g).max)
    high = bounds if posinf is None else posinf
    low = -bounds if neginf is None else neginf
    x = g.op("Where", g.op("IsNaN", self), g.cast(nan or 0.0), self)
    x = g.op("Where", g.op("IsInf", self, detect_negative=0), g.cast(high), x)
    return g.op("Where", g.op("IsInf", self, detect_positive=0), g.cast(low), x)


def info(g: Builder) -> Any:
    """Return the limits of the result's floating dtype."""
    of: Any = np.finfo if g.dtype.kind == "f" else finfo
    return of(g.dtype)


def entropy(g: Builder, self: Any) -> Value:
    """Return ``-x * log(x)``; 0 at 0."""
    x = g.cast(self)
    terms = g.op("Neg", g.op("Mul", x, g.op("Log", x)))
    terms = g.op("Where", g.op("Equal", x, 0), g.cast(0), terms)
    return g.op("Where", g.op("Less", x, 0), g.cast(-np.inf), terms)


rule("aten.special_entr.default")(entropy)


@rule("aten.special_ndtr.default")
def ndtr(g: Builder, self: Value) -> Value:
    whole = g.op("Erf", g.op("Mul", g.cast(self), math.sqrt(0.5)))
    return g.op("Mul", g.op("Add", whole, 1), 0.5)
