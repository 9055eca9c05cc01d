"""Recovers ELU, and SELU and CELU, from their formulas."""

from __future__ import annotations

from math import isclose

from burn_import.passes.activations.leaky_relu import positive
from burn_import.rewriting.pattern import (
    Build,
    Call,
    Match,
    Number,
    Pattern,
    Replacement,
    Rule,
    Scalar,
    Search,
    Value,
    either,
    elementwise,
    fuse,
)
from burn_ir.graph import Graph
from burn_ir.ops.activation import Celu, Elu, Selu

X, ALPHA = Value("x"), Scalar("alpha")


def _exp_minus_one(x: Pattern) -> Pattern:
    """Return the pattern of ``exp(x) - 1``."""
    exponential = Call("Exp", x)
    return either(
        Call("Sub", exponential, Number(1)), Call("Add", exponential, Number(-1))
    )


def _times_alpha(x: Pattern) -> Pattern:
    return Call("Mul", _exp_minus_one(x), ALPHA)


def _below_zero(curve: Pattern) -> Pattern:
    """Return the pattern of ``min(curve, 0)``, the part below 0 without a condition."""
    return either(Call("Min", curve, Number(0)), Call("Min", Number(0), curve))


def _elu_pattern(curve: Pattern) -> Pattern:
    return either(
        positive(X, X, curve), Call("Add", Call("Relu", X), _below_zero(curve))
    )


def _builder(op: type[Elu] | type[Celu]) -> Build:
    """Return a builder of ``op`` with the match's alpha (default 1), if positive."""

    def build(match: Match, search: Search) -> Replacement:
        alpha = match.numbers.get("alpha", 1.0)
        return elementwise(op(alpha=alpha))(match, search) if alpha > 0 else None

    return build


def _selu(match: Match, search: Search) -> Replacement:
    elu = next(node.op for node in match.nodes if isinstance(node.op, Elu))
    standard, gamma = Selu(), match.numbers["gamma"]
    pairs = ((elu.alpha, standard.alpha), (gamma, standard.gamma))
    # The constants of PyTorch and ONNX differ in their last digits.
    if not all(isclose(own, usual, rel_tol=1e-6) for own, usual in pairs):
        return None
    return elementwise(Selu(alpha=elu.alpha, gamma=gamma))(match, search)


RULES: tuple[Rule, ...] = (
    (Call("Mul", Call("Elu", X), Scalar("gamma")), _selu),
    (_elu_pattern(_exp_minus_one(X)), _builder(Elu)),
    (_elu_pattern(_times_alpha(X)), _builder(Elu)),
    (_elu_pattern(_times_alpha(Call("Div", X, ALPHA))), _builder(Celu)),
)


def elu(graph: Graph) -> Graph:
    """Return ``graph`` with ``Elu`` for ``where(x > 0, x, alpha * (exp(x) - 1))``.

    With ``x / alpha`` in the exponential it is ``Celu``, and with the constants of
    self-normalizing networks ``Selu``. Results may differ by rounding.
    """
    return fuse(graph, RULES, "Exp", "Elu")
