"""Recovers Softplus from its formula."""

from __future__ import annotations

from burn.dtypes import float64
from burn_import.rewriting.pattern import (
    Call,
    Match,
    Number,
    Replacement,
    Rule,
    Scalar,
    Search,
    Value,
    elementwise,
    fuse,
)
from burn_ir.graph import Graph
from burn_ir.ops.activation import Softplus
from burn_ir.ops.shape import Identity

X = Value("x")
_BUILD = elementwise(Softplus())
_LINEAR_ABOVE = Call("Where", Call("Greater", X, Number(20)), X, Call("Softplus", X))


def _if_rounded(match: Match, search: Search) -> Replacement:
    """Build Softplus for the form with ``x`` above 20, except in float64.

    Above 20 Softplus differs from ``x`` by 2e-9 at most, which only float64 resolves.
    """
    x = search.graph.type(match.values["x"])
    return None if x is None or x.dtype == float64 else _BUILD(match, search)


_CURVE = Call("Div", Call("Softplus", Value("scaled")), Scalar("beta"))
_ABOVE = Call("Greater", Value("scaled"), Number(20))
_SCALED_ABOVE = Call("Where", _ABOVE, X, Value("curve"))


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


RULES: tuple[Rule, ...] = (
    (Call("Log", Call("Add", Call("Exp", X), Number(1))), _BUILD),
    (_LINEAR_ABOVE, _if_rounded),
    (_SCALED_ABOVE, _if_scaled),
)


def softplus(graph: Graph) -> Graph:
    """Return ``graph`` with ``Softplus`` for ``log(1 + exp(x))``.

    The result is finite where ``exp(x)`` overflows. The form of PyTorch, ``where(x >
    20, x, softplus(x))``, is matched too unless it is float64, and so is its form with
    ``beta``. Results may differ by rounding.
    """
    return fuse(graph, RULES, "Exp", "Softplus")
