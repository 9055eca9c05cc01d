"""Recovers HardSigmoid from its formula."""

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
    product,
)
from burn_ir.graph import Graph
from burn_ir.op import Op
from burn_ir.ops.activation import HardSigmoid
from burn_ir.ops.options import shortest

X = Value("x")
_SIX = Call("Clip", Call("Add", X, Number(3)), Number(0), Number(6))
_SCALED = Call("Mul", X, Scalar("alpha"))
_SIXTH = product(X, Number(1 / 6))


def _line(found: Found, search: Search) -> tuple[Op, tuple[str, ...]] | None:
    """The line of the match: a sixth unless it has a slope, through a half or beta."""
    x = search.graph.type(found.values["x"])
    if x is None:
        return None
    sixth = 1 / 6 if x.dtype == float64 else shortest(1 / 6)
    alpha = found.numbers.get("alpha", sixth)
    beta = found.numbers.get("beta", 0.5)
    return elementwise(HardSigmoid(alpha=alpha, beta=beta))(found, search)


RULES: tuple[Rule, ...] = (
    (product(_SIX, Number(1 / 6)), _line),
    (Call("Clip", Call("Add", _SIXTH, Number(0.5)), Number(0), Number(1)), _line),
    (Call("Clip", Call("Add", _SCALED, Scalar("beta")), Number(0), Number(1)), _line),
)


def hard_sigmoid(graph: Graph) -> Graph:
    """``graph`` with ``HardSigmoid`` for ``clip(alpha * x + beta, 0, 1)``.

    So too for ``clip(x + 3, 0, 6) / 6``. Results may differ by rounding.
    """
    return fuse(graph, RULES, "Clip")
