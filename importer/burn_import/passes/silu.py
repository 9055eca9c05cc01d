"""Recovers SiLU, which is Swish, from its formula."""

from __future__ import annotations

from burn_import.passes.pattern import (
    Call,
    Number,
    Rule,
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

RULES: tuple[Rule, ...] = (
    (
        either(product(Call("Sigmoid", X), X), Call("Div", X, _SUM)),
        elementwise(Swish()),
    ),
)


def silu(graph: Graph) -> Graph:
    """``graph`` with ``Swish`` for ``x * sigmoid(x)``, and ``x / (1 + exp(-x))``.

    Results may differ by rounding.
    """
    return fuse(graph, RULES, "Sigmoid", "Exp")
