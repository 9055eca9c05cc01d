"""Recovers Softsign from its formula."""

from __future__ import annotations

from burn_import.rewriting.pattern import Call, Number, Rule, Value, elementwise, fuse
from burn_ir.graph import Graph
from burn_ir.ops.activation import Softsign

X = Value("x")

RULES: tuple[Rule, ...] = (
    (
        Call("Div", X, Call("Add", Call("Abs", X), Number(1))),
        elementwise(Softsign()),
    ),
)


def softsign(graph: Graph) -> Graph:
    """Return ``graph`` with ``Softsign`` for ``x / (1 + abs(x))``.

    Results may differ by rounding.
    """
    return fuse(graph, RULES, "Abs")
