"""Functions of two numbers, and the gamma and error functions."""

import math

from burn_import.frontends.torch_export.aten.math.arithmetic import into_out
from burn_import.frontends.torch_export.aten.math.logic import signbit
from burn_import.frontends.torch_export.builder import BOOL, Builder, Operand, Value
from burn_import.frontends.torch_export.registry import Rule, rule


@rule("aten.atan2.default", "aten.arctan2.default")
def atan2(g: Builder, self: Value, other: Value) -> Value:
    """Return the angle of the point ``(other, self)``."""
    return g.op("Atan2", g.cast(self), g.cast(other), domain="burn")


rule("aten.atan2.out", mutates="out")(into_out(atan2, is_float=True))


@rule("aten.xlogy.Tensor", "aten.xlogy.Scalar_Other", "aten.xlogy.Scalar_Self")
@rule(
    *("aten.special_xlogy.default", "aten.special_xlogy.other_scalar"),
    "aten.special_xlogy.self_scalar",
)
def xlogy(g: Builder, self: Operand, other: Operand) -> Value:
    """Return ``x * log(y)``; 0 where ``x`` is 0, unless ``y`` is NaN."""
    x, y = g.cast(self), g.cast(other)
    inside = g.op("And", g.op("Greater", y, 0), g.op("Less", y, math.inf))
    edge = g.op("And", g.op("Equal", x, 0), g.op("Not", inside))
    product = g.op("Mul", x, g.op("Log", g.op("Where", edge, g.cast(1), y)))
    return g.op("Where", g.op("IsNaN", y), y, product)


@rule(
    *("aten.special_xlog1py.default", "aten.special_xlog1py.other_scalar"),
    "aten.special_xlog1py.self_scalar",
)
def xlog1py(g: Builder, self: Operand, other: Operand) -> Value:
    return xlogy(g, self, g.op("Add", g.cast(other), 1))


@rule("aten.logaddexp.default")
def logaddexp(g: Builder, self: Value, other: Value) -> Value:
    a, b = g.cast(self), g.cast(other)
    equal = g.op("Equal", a, b)  # inf - inf is NaN
    distance = g.op("Where", equal, g.cast(0), g.op("Abs", g.op("Sub", a, b)))
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
    """Return ``self`` with the sign of ``other``, which zeros have as well."""
    size, negative = g.op("Abs", g.cast(self)), signbit(g.at(BOOL), g.cast(other))
    return g.op("Where", negative, g.op("Neg", size), size)


@rule("aten.heaviside.default")
def heaviside(g: Builder, self: Value, values: Value) -> Value:
    above = g.op("Where", g.op("Greater", self, 0), g.cast(1), g.cast(0))
    return g.op("Where", g.op("Equal", self, 0), values, above)


@rule("aten.lgamma.default", "aten.special_gammaln.default")
def lgamma(g: Builder, self: Operand) -> Value:
    return g.op("Lgamma", g.cast(self), domain="burn")


@rule("aten.mvlgamma.default", "aten.special_multigammaln.default")
def mvlgamma(g: Builder, self: Value, p: int) -> Value:
    """Return the sum of ``lgamma(x - i / 2)`` for ``i < p``, plus a constant."""
    x, total = g.cast(self), p * (p - 1) / 4 * math.log(math.pi)
    terms = [lgamma(g, g.op("Sub", x, i / 2)) for i in range(p)]
    return g.op("Add", g.op("Sum", *terms), total)


@rule(
    "aten.digamma.default", "aten.special_digamma.default", "aten.special_psi.default"
)
def digamma(g: Builder, self: Operand) -> Value:
    return g.op("Polygamma", g.cast(self), domain="burn", n=0)


@rule("aten.polygamma.default", "aten.special_polygamma.default")
def polygamma(g: Builder, n: int, self: Value) -> Value:
    return g.op("Polygamma", g.cast(self), domain="burn", n=n)


@rule("aten.erfinv.default", "aten.special_erfinv.default")
def erfinv(g: Builder, self: Operand) -> Value:
    return g.op("Erfinv", g.cast(self), domain="burn")


@rule("aten.special_ndtri.default")
def ndtri(g: Builder, self: Operand) -> Value:
    """Return the quantile function of the standard normal distribution."""
    centered = g.op("Sub", g.op("Mul", g.cast(self), 2), 1)
    return g.op("Mul", g.op("Erfinv", centered, domain="burn"), math.sqrt(2))


@rule("aten.gcd.default")
def gcd(g: Builder, self: Value, other: Value) -> Value:
    return g.op("Gcd", g.cast(self), g.cast(other), domain="burn")


@rule("aten.lcm.default")
def lcm(g: Builder, self: Value, other: Value) -> Value:
    """Return the least common multiple, 0 if one of the numbers is."""
    x, y = g.cast(self), g.cast(other)
    divisor = g.op("Gcd", x, y, domain="burn")
    quotient = g.op("FloorDiv", x, g.op("Max", divisor, 1), domain="burn")
    return g.op("Abs", g.op("Mul", quotient, y))


def bessel_rule(order: int, is_scaled: bool) -> Rule:
    """Return the rule of a modified Bessel function of the first kind."""

    def apply(g: Builder, self: Operand) -> Value:
        x = g.cast(self)
        scaled = g.op("ScaledBesselI", x, domain="burn", order=order)
        return scaled if is_scaled else g.op("Mul", scaled, g.op("Exp", g.op("Abs", x)))

    return apply


rule("aten.i0.default", "aten.special_i0.default")(bessel_rule(0, False))
rule("aten.special_i0e.default")(bessel_rule(0, True))
rule("aten.special_i1.default")(bessel_rule(1, False))
rule("aten.special_i1e.default")(bessel_rule(1, True))
