"""Arithmetic of two or three operands, with the type promotion of ATen."""

from typing import Any

from burn_import.frontends.torch_export.builder import (
    BOOL,
    FLOAT32,
    Builder,
    Operand,
    Value,
    kind_of,
    promoted_dtype,
)
from burn_import.frontends.torch_export.registry import Rule, rule
from burn_ir import UnsupportedModel


def binary(op_type: str) -> Rule:
    """Return the rule of an operator whose operands have the dtype of the result."""

    def apply(g: Builder, self: Operand, other: Operand) -> Value:
        return g.op(op_type, g.cast(self), g.cast(other))

    return apply


def into_out(function: Rule, *, is_float: bool = False) -> Rule:
    """Return the rule of an overload that writes to ``out``, which may be wider.

    ``is_float`` says that the result of whole numbers is float32.
    """

    def apply(
        g: Builder,
        self: Operand,
        other: Operand | None = None,
        *,
        alpha: Operand | None = None,
        out: Value,
    ) -> Value:
        operands = (self,) if other is None else (self, other)
        dtype = promoted_dtype(operands)
        if is_float and kind_of(dtype) < kind_of(FLOAT32):
            dtype = FLOAT32
        options = {} if alpha is None else {"alpha": alpha}
        return g.cast(function(g.at(dtype), *operands, **options))

    return apply


def multiply_by(g: Builder, x: Value, factor: Operand) -> Value:
    """Return ``x`` multiplied by a number, unless that is 1."""
    if not isinstance(factor, Value) and factor == 1:
        return x
    return g.op("Mul", x, g.cast(factor))


@rule("aten.add.Tensor", "aten.add.Scalar")
def add(g: Builder, self: Operand, other: Operand, alpha: Operand = 1) -> Value:
    if g.dtype == BOOL:
        return g.op("Or", g.cast(self), g.cast(other))
    return g.op("Add", g.cast(self), multiply_by(g, g.cast(other), alpha))


@rule("aten.sub.Tensor", "aten.sub.Scalar")
@rule("aten.subtract.Tensor", "aten.subtract.Scalar")
def sub(g: Builder, self: Operand, other: Operand, alpha: Operand = 1) -> Value:
    return g.op("Sub", g.cast(self), multiply_by(g, g.cast(other), alpha))


@rule("aten.rsub.Tensor", "aten.rsub.Scalar")
def rsub(g: Builder, self: Operand, other: Operand, alpha: Operand = 1) -> Value:
    return sub(g, other, self, alpha)


@rule("aten.mul.Tensor", "aten.mul.Scalar")
@rule("aten.multiply.Tensor", "aten.multiply.Scalar")
def mul(g: Builder, self: Operand, other: Operand) -> Value:
    return g.op("And" if g.dtype == BOOL else "Mul", g.cast(self), g.cast(other))


rule("aten.add.out", mutates="out")(into_out(add))
rule("aten.sub.out", mutates="out")(into_out(sub))
rule("aten.mul.out", mutates="out")(into_out(mul))
rule("aten.div.out", mutates="out")(into_out(binary("Div"), is_float=True))
rule("aten.div.Tensor", "aten.div.Scalar")(binary("Div"))
rule("aten.true_divide.Tensor", "aten.true_divide.Scalar")(binary("Div"))
rule("aten.divide.Tensor", "aten.divide.Scalar")(binary("Div"))


@rule("aten.div.Tensor_mode", "aten.div.Scalar_mode")
@rule("aten.divide.Tensor_mode", "aten.divide.Scalar_mode")
def div_mode(
    g: Builder, self: Operand, other: Operand, rounding_mode: str | None = None
) -> Value:
    if rounding_mode == "floor":
        return floor_divide(g, self, other)
    quotient = g.op("Div", g.cast(self), g.cast(other))
    if rounding_mode is None:
        return quotient
    if rounding_mode != "trunc":
        raise UnsupportedModel(
            f"expected rounding_mode floor, trunc or None, got {rounding_mode!r}"
        )
    is_whole = kind_of(g.dtype) < kind_of(FLOAT32)
    return quotient if is_whole else g.op("Trunc", quotient, domain="burn")


@rule("aten.floor_divide.default", "aten.floor_divide.Scalar", "_operator.floordiv")
@rule("aten.floor_divide_.Tensor", mutates="self")
def floor_divide(g: Builder, self: Operand, other: Operand) -> Value:
    return g.op("FloorDiv", g.cast(self), g.cast(other), domain="burn")


@rule(
    "aten.remainder.Tensor",
    "aten.remainder.Scalar",
    "aten.remainder.Scalar_Tensor",
    "_operator.mod",
)
def remainder(g: Builder, self: Operand, other: Operand) -> Value:
    return g.op("Mod", g.cast(self), g.cast(other))


@rule("aten.fmod.Tensor", "aten.fmod.Scalar")
def fmod(g: Builder, self: Operand, other: Operand) -> Value:
    return g.op("Mod", g.cast(self), g.cast(other), fmod=1)


rule("aten.maximum.default", "aten.max.other")(binary("Max"))
rule("aten.minimum.default", "aten.min.other")(binary("Min"))
rule("aten.maximum.out", "aten.max.out", mutates="out")(into_out(binary("Max")))
rule("aten.minimum.out", "aten.min.out", mutates="out")(into_out(binary("Min")))
rule("_operator.add")(binary("Add"))
rule("_operator.sub")(binary("Sub"))
rule("_operator.mul")(binary("Mul"))
rule("_operator.truediv", "torch.sym_truediv")(binary("Div"))
rule("_operator.pow")(binary("Pow"))
rule("torch.sym_max")(binary("Max"))
rule("torch.sym_min")(binary("Min"))


def numbers_only(op_type: str) -> Rule:
    """Return the rule of a maximum or minimum that ignores NaN."""

    def apply(g: Builder, self: Value, other: Value) -> Value:
        a, b = g.cast(self), g.cast(other)
        if kind_of(g.dtype) < kind_of(FLOAT32):
            return g.op(op_type, a, b)
        best = g.op("Where", g.op("IsNaN", b), a, g.op(op_type, a, b))
        return g.op("Where", g.op("IsNaN", a), b, best)

    return apply


rule("aten.fmax.default")(numbers_only("Max"))
rule("aten.fmin.default")(numbers_only("Min"))


@rule("aten.pow.Tensor_Scalar", "aten.pow.Scalar", "aten.pow.Tensor_Tensor")
@rule(
    "aten.float_power.Tensor_Scalar",
    "aten.float_power.Scalar",
    "aten.float_power.Tensor_Tensor",
)
@rule("aten.pow_.Tensor", "aten.float_power_.Tensor", mutates="self")
def power(g: Builder, self: Operand, exponent: Operand) -> Value:
    return g.op("Pow", g.cast(self), g.cast(exponent))


@rule("aten.pow.Tensor_Scalar_out", mutates="out")
def power_out(g: Builder, self: Value, exponent: Operand, out: Value) -> Value:
    """Return the power in the dtype of ``out``."""
    of = g.at(promoted_dtype((self, exponent)))
    return g.cast(power(of, self, exponent))


@rule("aten.clamp.default", "aten.clamp.Tensor")
@rule("aten.clip.default", "aten.clip.Tensor")
def clamp(
    g: Builder, self: Value, min: Operand | None = None, max: Operand | None = None
) -> Value:
    """Return ``Clip`` for constant bounds, else ``Max`` and ``Min``."""
    x, bounds = g.cast(self), (min, max)
    if not any(isinstance(bound, Value) for bound in bounds):
        ends = (None if bound is None else g.cast(bound) for bound in bounds)
        return g.op("Clip", x, *ends)
    x = x if min is None else g.op("Max", x, g.cast(min))
    return x if max is None else g.op("Min", x, g.cast(max))


@rule("aten.clamp_min.default", "aten.clamp_min.Tensor")
def clamp_min(g: Builder, self: Value, min: Operand) -> Value:
    return clamp(g, self, min)


@rule("aten.clamp_max.default", "aten.clamp_max.Tensor")
def clamp_max(g: Builder, self: Value, max: Operand) -> Value:
    return clamp(g, self, None, max)


@rule("aten.lerp.Scalar", "aten.lerp.Tensor")
def lerp(g: Builder, self: Value, end: Value, weight: Operand) -> Value:
    return g.op("Add", self, multiply_by(g, g.op("Sub", end, self), weight))


@rule("aten.addcmul.default")
def addcmul(
    g: Builder, self: Value, tensor1: Value, tensor2: Value, value: Any = 1
) -> Value:
    product = g.op("Mul", multiply_by(g, g.cast(tensor1), value), g.cast(tensor2))
    return g.op("Add", g.cast(self), product)


@rule("aten.addcdiv.default")
def addcdiv(
    g: Builder, self: Value, tensor1: Value, tensor2: Value, value: Any = 1
) -> Value:
    quotient = g.op("Div", multiply_by(g, g.cast(tensor1), value), g.cast(tensor2))
    return g.op("Add", g.cast(self), quotient)


@rule("aten.ldexp.Tensor")
@rule("aten.ldexp_.default", mutates="self")
def ldexp(g: Builder, self: Value, other: Value) -> Value:
    return g.op("Mul", g.cast(self), g.op("Pow", g.cast(2), g.cast(other)))
