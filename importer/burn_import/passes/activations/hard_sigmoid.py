"""Recovers HardSigmoid from its formula."""

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
    product,
)
from burn_ir.graph import Graph
from burn_ir.ops.activation import HardSigmoid
from burn_ir.ops.options import shortest

X = Value("x")
_SIX = Call("Clip", Call("Add", X, Number(3)), Number(0), Number(6))
_SCALED = Call("Mul", X, Scalar("alpha"))
_SIXTH = product(X, Number(1 / 6))


def _build_hard_sigmoid(match: Match, search: Search) -> Replacement:
    """Build HardSigmoid with the match's slope and offset; default 1/6 and 1/2."""
    x = search.graph.type(match.values["x"])
    if x is None:
        return None
    sixth = 1 / 6 if x.dtype == float64 else shortest(1 / 6)
    alpha = match.numbers.get("alpha", sixth)
    beta = match.numbers.get("beta", 0.5)
    return elementwise(HardSigmoid(alpha=alpha, beta=beta))(match, search)


RULES: tuple[Rule, ...] = (
    (product(_SIX, Number(1 / 6)), _build_hard_sigmoid),
    (
        Call("Clip", Call("Add", _SIXTH, Number(0.5)), Number(0), Number(1)),
        _build_hard_sigmoid,
    ),
    (
        Call("Clip", Call("Add", _SCALED, Scalar("beta")), Number(0), Number(1)),
        _build_hard_sigmoid,
    ),
)


def hard_sigmoid(graph: Graph) -> Graph:
    """Return ``graph`` with ``HardSigmoid`` for ``clip(alpha * x + beta, 0, 1)``.

    ``clip(x + 3, 0, 6) / 6`` is matched too. Results may differ by rounding.
    """
    return fuse(graph, RULES, "Clip")
