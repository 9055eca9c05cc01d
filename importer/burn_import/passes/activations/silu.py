"""Recovers SiLU (Swish) from its formula."""

from __future__ import annotations

from burn_import.rewriting.pattern import (
    Call,
    Match,
    Number,
    Replacement,
    Rule,
    Scalar,
    Search,
    Value,
    either,
    elementwise,
    fuse,
    product,
)
from burn_ir.graph import Graph
from burn_ir.ops.activation import Swish

X = Value("x")
_SUM = Call("Add", Call("Exp", Call("Neg", X)), Number(1))

_SCALED = Call("Mul", X, Scalar("alpha"))


def _with_slope(match: Match, search: Search) -> Replacement:
    """Build ``Swish`` with the match's factor in the sigmoid (1.702 in quick GELU)."""
    return elementwise(Swish(alpha=match.numbers["alpha"]))(match, search)


RULES: tuple[Rule, ...] = (
    (
        either(product(Call("Sigmoid", X), X), Call("Div", X, _SUM)),
        elementwise(Swish()),
    ),
    (product(Call("Sigmoid", _SCALED), X), _with_slope),
)


def silu(graph: Graph) -> Graph:
    """Return ``graph`` with ``Swish`` for ``x * sigmoid(x)`` and ``x / (1 + exp(-x))``.

    ``x`` may have a factor in the sigmoid, as in quick GELU. Results may differ by
    rounding.
    """
    return fuse(graph, RULES, "Sigmoid", "Exp")
