"""Recovers Softplus from its formula."""

from __future__ import annotations

from burn.dtypes import float64
from burn_import.passes.pattern import (
    Call,
    Found,
    Number,
    Rule,
    Search,
    Value,
    elementwise,
    fuse,
)
from burn_ir.graph import Graph
from burn_ir.op import Op
from burn_ir.ops.activation import Softplus

X = Value("x")
_BUILD = elementwise(Softplus())
_LINEAR_ABOVE = Call("Where", Call("Greater", X, Number(20)), X, Call("Softplus", X))


def _if_rounded(found: Found, search: Search) -> tuple[Op, tuple[str, ...]] | None:
    """The function is its argument above 20 but for 2e-9, which float64 can see."""
    x = search.graph.type(found.values["x"])
    return None if x is None or x.dtype == float64 else _BUILD(found, search)


RULES: tuple[Rule, ...] = (
    (Call("Log", Call("Add", Call("Exp", X), Number(1))), _BUILD),
    (_LINEAR_ABOVE, _if_rounded),
)


def softplus(graph: Graph) -> Graph:
    """``graph`` with ``Softplus`` for ``log(1 + exp(x))``.

    Its result is finite where the exponential on its own is not. What takes ``x``
    itself above 20, as PyTorch does, is a Softplus too unless it is of float64. Results
    may differ by rounding.
    """
    return fuse(graph, RULES, "Exp", "Softplus")
