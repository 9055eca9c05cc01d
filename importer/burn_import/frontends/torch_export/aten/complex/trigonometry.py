"""Trigonometric and hyperbolic functions of complex numbers."""

from burn_import.frontends.torch_export.builder import Builder, Value
from burn_import.frontends.torch_export.complex_as_real import join_pairs, parts, reals
from burn_import.frontends.torch_export.registry import COMPLEX, Rule, rule

#: The real functions of the real part and of the imaginary part, whose products are the
#: real and the imaginary part of the result; and the sign of the latter.
_PRODUCTS = {
    "sin": (("Sin", "Cosh"), ("Cos", "Sinh"), 1),
    "cos": (("Cos", "Cosh"), ("Sin", "Sinh"), -1),
    "sinh": (("Sinh", "Cos"), ("Cosh", "Sin"), 1),
    "cosh": (("Cosh", "Cos"), ("Sinh", "Sin"), 1),
}


def _of_products(name: str) -> Rule:
    real_functions, imaginary_functions, sign = _PRODUCTS[name]

    def apply(g: Builder, self: Value) -> Value:
        of = reals(g)
        x, y = (of.cast(part) for part in parts(g, self))
        real, imaginary = (
            of.op("Mul", of.op(first, x), of.op(second, y))
            for first, second in (real_functions, imaginary_functions)
        )
        return join_pairs(g, real, imaginary if sign > 0 else of.op("Neg", imaginary))

    return apply


for _name in _PRODUCTS:
    rule(f"aten.{_name}.default", table=COMPLEX)(_of_products(_name))


@rule("aten.tanh.default", table=COMPLEX)
def tanh(g: Builder, self: Value) -> Value:
    of = reals(g)
    x, y = (of.op("Mul", of.cast(part), 2.0) for part in parts(g, self))
    # Above 40 the secant is below the rounding of 1, and cosh would overflow later.
    bounded = of.op("Clip", x, of.cast(-40.0), of.cast(40.0))
    secant = of.op("Reciprocal", of.op("Cosh", bounded))
    cosine, sine = (of.op("Mul", secant, of.op(way, y)) for way in ("Cos", "Sin"))
    below = of.op("Add", cosine, 1.0)
    return join_pairs(
        g, of.op("Div", of.op("Tanh", x), below), of.op("Div", sine, below)
    )
