"""Recovers Softplus from its formula."""

from __future__ import annotations

from burn.dtypes import float64
from burn_import.rewriting.pattern import (
    Call,
    Found,
    Number,
    Rule,
    Scalar,
    Search,
    Value,
    elementwise,
    fuse,
)
from burn_ir.graph import Graph
from burn_ir.op import Op
from burn_ir.ops.activation import Softplus
from burn_ir.ops.shape import Identity

X = Value("x")
_BUILD = elementwise(Softplus())
_LINEAR_ABOVE = Call("Where", Call("Greater", X, Number(20)), X, Call("Softplus", X))


def _if_rounded(found: Found, search: Search) -> tuple[Op, tuple[str, ...]] | None:
    """The function is its argument above 20 but for 2e-9, which float64 can see."""
    x = search.graph.type(found.values["x"])
    return None if x is None or x.dtype == float64 else _BUILD(found, search)


_CURVE = Call("Div", Call("Softplus", Value("scaled")), Scalar("beta"))
_ABOVE = Call("Greater", Value("scaled"), Number(20))
_SCALED_ABOVE = Call("Where", _ABOVE, X, Value("curve"))


def _if_scaled(found: Found, search: Search) -> tuple[Op, tuple[str, ...]] | None:
    """The curve alone if it is the softplus of what is compared, divided again."""
    x, curve = search.graph.type(found.values["x"]), found.values["curve"]
    if x is None or x.dtype == float64 or search.graph.type(curve) != x:
        return None
    scaled = Call("Mul", X, Scalar("beta"))
    ways = (
        way
        for factor in scaled.match(found.values["scaled"], search, found)
        for way in _CURVE.match(curve, search, factor)
    )
    return (Identity(), (curve,)) if any(True for _ in ways) else None


RULES: tuple[Rule, ...] = (
    (Call("Log", Call("Add", Call("Exp", X), Number(1))), _BUILD),
    (_LINEAR_ABOVE, _if_rounded),
    (_SCALED_ABOVE, _if_scaled),
)


def softplus(graph: Graph) -> Graph:
    """``graph`` with ``Softplus`` for ``log(1 + exp(x))``.

    Its result is finite where the exponential on its own is not. What takes ``x``
    itself above 20, as PyTorch does, is a Softplus too unless it is of float64; so too
    with a factor before it, by which it is divided behind. Results may differ by
    rounding.
    """
    return fuse(graph, RULES, "Exp", "Softplus")
