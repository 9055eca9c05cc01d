"""Activations that are smooth, or a product with a gate, recovered from formulas."""

from math import pi, sqrt

from burn.dtypes import float64
from burn_import.rewriting.pattern import (
    Call,
    FormulaPass,
    Match,
    Number,
    Pattern,
    Replacement,
    Scalar,
    Search,
    Value,
    either,
    elementwise,
    product,
)
from burn_ir.ops.activation import (
    Gelu,
    HardSigmoid,
    HardSwish,
    Mish,
    Softplus,
    Softsign,
    Swish,
)
from burn_ir.ops.options import non_default, shortest
from burn_ir.ops.shape import Identity

X = Value("x")


def _gate(curve: Pattern) -> Pattern:
    """Return the pattern of ``x * 0.5 * (1 + curve)``."""
    return product(Call("Add", curve, Number(1)), Number(0.5), X)


_CUBE = product(Number(0.044715), X, X, X)
_SQUARE = product(Number(0.044715), X, X)
_SLOPE = Number(sqrt(2 / pi))
_INNER = either(
    product(Call("Add", X, _CUBE), _SLOPE),
    product(Call("Add", _SQUARE, Number(1)), _SLOPE, X),
)

#: ``x / 2 * (1 + erf(x / sqrt(2)))``, also with the approximation of ``erf`` by
#: ``tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))``.
gelu = FormulaPass(
    "gelu",
    "Recovers GELU, exact and with the tanh approximation, from its formula.",
    (
        (_gate(Call("Erf", product(Number(sqrt(0.5)), X))), elementwise(Gelu())),
        (_gate(Call("Tanh", _INNER)), elementwise(Gelu(approximate="tanh"))),
    ),
    *("Erf", "Tanh"),
)


def _with_slope(match: Match, search: Search) -> Replacement:
    """Build ``Swish`` with the match's factor in the sigmoid (1.702 in quick GELU)."""
    return elementwise(Swish(alpha=match.numbers["alpha"]))(match, search)


_SUM = Call("Add", Call("Exp", Call("Neg", X)), Number(1))

#: ``x * sigmoid(x)`` and ``x / (1 + exp(-x))``; ``x`` may have a factor in the sigmoid.
silu = FormulaPass(
    "silu",
    "Recovers SiLU (Swish) from its formula.",
    (
        (
            either(product(Call("Sigmoid", X), X), Call("Div", X, _SUM)),
            elementwise(Swish()),
        ),
        (product(Call("Sigmoid", Call("Mul", X, Scalar("alpha"))), X), _with_slope),
    ),
    *("Sigmoid", "Exp"),
)

_SIX = Call("Clip", Call("Add", X, Number(3)), Number(0), Number(6))


def _by_slope(match: Match, search: Search) -> Replacement:
    """Build HardSwish of a HardSigmoid that has its slope."""
    ops = [n.op for n in match.nodes if isinstance(n.op, HardSigmoid)]
    others = non_default(alpha=(ops[0].alpha, 1 / 6), beta=(ops[0].beta, 0.5))
    return None if others else elementwise(HardSwish())(match, search)


#: ``x * clip(x + 3, 0, 6) / 6``, and ``x`` times ``HardSigmoid`` of slope 1 / 6.
hard_swish = FormulaPass(
    "hard_swish",
    "Recovers HardSwish from its formula.",
    (
        (product(_SIX, Number(1 / 6), X), elementwise(HardSwish())),
        (product(Call("HardSigmoid", X), X), _by_slope),
    ),
    *("Clip", "HardSigmoid"),
)


def _unit_clip(sum_: Pattern) -> Pattern:
    return Call("Clip", sum_, Number(0), Number(1))


def _build_hard_sigmoid(match: Match, search: Search) -> Replacement:
    """Build HardSigmoid with the match's slope and offset; default 1/6 and 1/2."""
    x = search.graph.type(match.values["x"])
    if x is None:
        return None
    sixth = 1 / 6 if x.dtype == float64 else shortest(1 / 6)
    alpha = match.numbers.get("alpha", sixth)
    beta = match.numbers.get("beta", 0.5)
    return elementwise(HardSigmoid(alpha=alpha, beta=beta))(match, search)


_SIXTH = product(X, Number(1 / 6))
_LINE = Call("Add", Call("Mul", X, Scalar("alpha")), Scalar("beta"))

#: ``clip(alpha * x + beta, 0, 1)`` and ``clip(x + 3, 0, 6) / 6``.
hard_sigmoid = FormulaPass(
    "hard_sigmoid",
    "Recovers HardSigmoid from its formula.",
    (
        (product(_SIX, Number(1 / 6)), _build_hard_sigmoid),
        (_unit_clip(Call("Add", _SIXTH, Number(0.5))), _build_hard_sigmoid),
        (_unit_clip(_LINE), _build_hard_sigmoid),
    ),
    "Clip",
)

_CURVE = Call("Div", Call("Softplus", Value("scaled")), Scalar("beta"))


def _if_rounded(match: Match, search: Search) -> Replacement:
    """Build Softplus for the form with ``x`` above 20, except in float64.

    Above 20 Softplus differs from ``x`` by 2e-9 at most, which only float64 resolves.
    """
    x = search.graph.type(match.values["x"])
    if x is None or x.dtype == float64:
        return None
    return elementwise(Softplus())(match, search)


def _if_scaled(match: Match, search: Search) -> Replacement:
    """Drop ``where`` if a branch is ``softplus(beta * x) / beta``, not in float64."""
    x, curve = search.graph.type(match.values["x"]), match.values["curve"]
    if x is None or x.dtype == float64 or search.graph.type(curve) != x:
        return None
    scaled = Call("Mul", X, Scalar("beta"))
    ways = (
        way
        for factor in scaled.match(match.values["scaled"], search, match)
        for way in _CURVE.match(curve, search, factor)
    )
    return (Identity(), (curve,)) if any(True for _ in ways) else None


def _linear_above(x: Pattern, curve: Pattern) -> Pattern:
    return Call("Where", Call("Greater", x, Number(20)), X, curve)


#: ``log(1 + exp(x))``, which is finite where ``exp(x)`` overflows, and PyTorch's form
#: ``where(x > 20, x, softplus(x))``, also with ``beta``, unless it is float64.
softplus = FormulaPass(
    "softplus",
    "Recovers Softplus from its formula.",
    (
        (Call("Log", Call("Add", Call("Exp", X), Number(1))), elementwise(Softplus())),
        (_linear_above(X, Call("Softplus", X)), _if_rounded),
        (_linear_above(Value("scaled"), Value("curve")), _if_scaled),
    ),
    *("Exp", "Softplus"),
)

#: ``x / (1 + abs(x))``.
softsign = FormulaPass(
    "softsign",
    "Recovers Softsign from its formula.",
    (
        (
            Call("Div", X, Call("Add", Call("Abs", X), Number(1))),
            elementwise(Softsign()),
        ),
    ),
    "Abs",
)

#: ``x * tanh(softplus(x))``.
mish = FormulaPass(
    "mish",
    "Recovers Mish from its formula.",
    ((product(Call("Tanh", Call("Softplus", X)), X), elementwise(Mish())),),
    "Softplus",
)
