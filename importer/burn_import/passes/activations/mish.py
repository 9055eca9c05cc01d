"""Recovers Mish from its formula."""

from __future__ import annotations

from burn_import.rewriting.pattern import Call, Rule, Value, elementwise, fuse, product
from burn_ir.graph import Graph
from burn_ir.ops.activation import Mish

X = Value("x")

RULES: tuple[Rule, ...] = (
    (product(Call("Tanh", Call("Softplus", X)), X), elementwise(Mish())),
)


def mish(graph: Graph) -> Graph:
    """Return ``graph`` with ``Mish`` for ``x * tanh(softplus(x))``.

    Results may differ by rounding.
    """
    return fuse(graph, RULES, "Softplus")
