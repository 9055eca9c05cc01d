"""Recovers LeakyReLU from its formula."""

from __future__ import annotations

from burn_import.rewriting.pattern import (
    Call,
    Found,
    Number,
    Pattern,
    Rule,
    Scalar,
    Search,
    Value,
    either,
    elementwise,
    fuse,
)
from burn_ir.graph import Graph
from burn_ir.op import Op
from burn_ir.ops.activation import LeakyRelu

X, SLOPE = Value("x"), Scalar("alpha")
_SCALED = Call("Mul", X, SLOPE)


def positive(x: Pattern, then: Pattern, other: Pattern) -> Pattern:
    """``then`` where ``x`` is above 0, ``other`` elsewhere; both are 0 at 0."""
    zero = Number(0)
    above = either(Call("Greater", x, zero), Call("GreaterOrEqual", x, zero))
    below = either(Call("Less", x, zero), Call("LessOrEqual", x, zero))
    return either(Call("Where", above, then, other), Call("Where", below, other, then))


def _leaky(found: Found, search: Search) -> tuple[Op, tuple[str, ...]] | None:
    alpha = found.numbers["alpha"]
    return elementwise(LeakyRelu(alpha=alpha))(found, search)


def _if_flatter(found: Found, search: Search) -> tuple[Op, tuple[str, ...]] | None:
    """The larger of two lines is the right one if the slope is below 1."""
    return _leaky(found, search) if 0 <= found.numbers["alpha"] <= 1 else None


RULES: tuple[Rule, ...] = (
    (positive(X, X, _SCALED), _leaky),
    (either(Call("Max", X, _SCALED), Call("Max", _SCALED, X)), _if_flatter),
)


def leaky_relu(graph: Graph) -> Graph:
    """``graph`` with ``LeakyRelu`` for ``where(x > 0, x, alpha * x)``.

    So too for the larger of ``x`` and ``alpha * x`` if ``alpha`` is at most 1. Zeros
    may differ by their sign.
    """
    return fuse(graph, RULES, "Where", "Max")
