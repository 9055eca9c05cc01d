"""Recovers normalization by the root mean square."""

from __future__ import annotations

from burn_import.passes.norms.matching import (
    Cast,
    Mean,
    Normalized,
    inverse_root,
    operand,
    root,
    weight,
)
from burn_import.rewriting.pattern import (
    Call,
    Match,
    Pattern,
    Rule,
    Scalar,
    Search,
    Stored,
    Value,
    either,
    fuse,
    product,
)
from burn_ir.graph import Graph
from burn_ir.op import Op
from burn_ir.ops.fused import RMSNorm
from burn_ir.ops.norm import RMSNormalization

X, WEIGHT = Value("x"), Stored("weight")


def _power(x: Pattern) -> Pattern:
    """Return the pattern of the mean square plus epsilon."""
    return Call("Add", Mean(product(x, x)), Scalar("epsilon"))


def _normalized(x: Pattern) -> Pattern:
    power = _power(x)
    return either(product(x, inverse_root(power)), Call("Div", x, root(power)))


def _weighted_norm(x: Pattern) -> Pattern:
    power = _power(x)
    return either(
        product(x, inverse_root(power), WEIGHT),
        product(Call("Div", x, root(power)), WEIGHT),
        Call("Div", product(x, WEIGHT), root(power)),
    )


def _cast_back(unit: Pattern) -> Pattern:
    """Return the cast of a norm in float32 back to a half type."""
    return Cast(unit, back=True)


_FUSED, _WIDE_FUSED = Normalized(RMSNorm, X), Normalized(RMSNorm, Cast(X))
_WEIGHTED = either(
    _weighted_norm(X),
    product(_cast_back(_normalized(Cast(X))), WEIGHT),
    # The norm without a weight was fused in an earlier round.
    product(_FUSED, WEIGHT),
    product(_cast_back(_WIDE_FUSED), WEIGHT),
)


def _build_weighted(match: Match, search: Search) -> tuple[Op, tuple[str, ...]] | None:
    scale = None if operand(match, search) is None else weight("weight", match, search)
    if scale is None:
        return None
    axis, epsilon = int(match.numbers["axis"]), match.numbers["epsilon"]
    return RMSNormalization(axis=axis, epsilon=epsilon), (match.values["x"], scale)


def _build_plain(match: Match, search: Search) -> tuple[Op, tuple[str, ...]] | None:
    if operand(match, search) is None:
        return None
    axis, epsilon = int(match.numbers["axis"]), match.numbers["epsilon"]
    return RMSNorm(axis=axis, epsilon=epsilon), (match.values["x"],)


RULES: tuple[Rule, ...] = (
    (_WEIGHTED, _build_weighted),
    (either(_normalized(X), _cast_back(_normalized(Cast(X)))), _build_plain),
)


def rms_norm(graph: Graph) -> Graph:
    """Return ``graph`` with ``RMSNormalization`` for its decompositions.

    They compute ``x / sqrt(mean(x * x) + eps) * weight``, with the mean over the last
    axes. A weight is a constant with one element per feature; other factors stay nodes.
    Without a weight the result is ``RMSNorm``. Casts of half types to float32 and back
    belong to the operator, as ONNX defines it. Results may differ by rounding.
    """
    return fuse(graph, RULES, "ReduceMean", "RMSNorm")
