"""Recovers LeakyReLU from its formula."""

from __future__ import annotations

from burn_import.rewriting.pattern import (
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
from burn_ir.ops.activation import LeakyRelu

X, SLOPE = Value("x"), Scalar("alpha")
_SCALED = Call("Mul", X, SLOPE)


def positive(x: Pattern, then: Pattern, other: Pattern) -> Pattern:
    """Return the pattern of ``where(x > 0, then, other)`` and its equivalents.

    The comparison may include 0, where both branches must be 0.
    """
    zero = Number(0)
    above = either(Call("Greater", x, zero), Call("GreaterOrEqual", x, zero))
    below = either(Call("Less", x, zero), Call("LessOrEqual", x, zero))
    return either(Call("Where", above, then, other), Call("Where", below, other, then))


def _leaky(match: Match, search: Search) -> Replacement:
    alpha = match.numbers["alpha"]
    return elementwise(LeakyRelu(alpha=alpha))(match, search)


def _leaky_from_max(match: Match, search: Search) -> Replacement:
    """Build LeakyRelu for ``max(x, alpha * x)``, which needs alpha from 0 to 1."""
    return _leaky(match, search) if 0 <= match.numbers["alpha"] <= 1 else None


RULES: tuple[Rule, ...] = (
    (positive(X, X, _SCALED), _leaky),
    (either(Call("Max", X, _SCALED), Call("Max", _SCALED, X)), _leaky_from_max),
)


def leaky_relu(graph: Graph) -> Graph:
    """Return ``graph`` with ``LeakyRelu`` for ``where(x > 0, x, alpha * x)``.

    ``max(x, alpha * x)`` is matched too if ``alpha`` is from 0 to 1. Zeros may differ
    by their sign.
    """
    return fuse(graph, RULES, "Where", "Max")
