"""Recovers PReLU from its formula."""

from __future__ import annotations

from burn.dtypes import is_float
from burn_import.passes.activations.leaky_relu import positive
from burn_import.rewriting.arrays import derive
from burn_import.rewriting.pattern import (
    Build,
    Call,
    Match,
    Number,
    Pattern,
    Replacement,
    Rule,
    Search,
    Stored,
    Value,
    either,
    fuse,
)
from burn_ir.graph import Graph
from burn_ir.ops.activation import PRelu

X, SLOPE = Value("x"), Stored("slope")
_MIRRORED = Call("Mul", Call("Relu", Call("Neg", X)), SLOPE)
_LOWER: Pattern = either(Call("Min", X, Number(0)), Call("Min", Number(0), X))


def _builder(sign: int) -> Build:
    """Return a builder of ``PRelu`` with the match's slope times ``sign``."""

    def build(match: Match, search: Search) -> Replacement:
        name = match.values["slope"]
        x, slope = search.graph.type(match.values["x"]), search.array(name)
        if x is None or x.shape is None or slope is None or not is_float(x.dtype):
            return None
        rank = len(x.shape)
        if slope.dtype != x.dtype or slope.ndim > rank or match.rank > rank:
            return None
        pairs = zip(slope.shape, x.shape[rank - slope.ndim :], strict=True)
        if not all(n in (1, extent) for n, extent in pairs):
            return None
        if sign < 0:
            name = derive(search.graph, name, -slope, ".negative")
        return PRelu(), (match.values["x"], name)

    return build


RULES: tuple[Rule, ...] = (
    (Call("Sub", Call("Relu", X), _MIRRORED), _builder(1)),
    (Call("Add", Call("Relu", X), _MIRRORED), _builder(-1)),
    (Call("Add", Call("Relu", X), Call("Mul", _LOWER, SLOPE)), _builder(1)),
    (positive(X, X, Call("Mul", X, SLOPE)), _builder(1)),
)


def prelu(graph: Graph) -> Graph:
    """Return ``graph`` with ``PRelu`` for ``relu(x) - slope * relu(-x)``.

    The slope is a constant that broadcasts to ``x``. ``where(x > 0, x, slope * x)`` is
    matched too. Zeros may differ by their sign.
    """
    return fuse(graph, RULES, "Relu", "Where")
