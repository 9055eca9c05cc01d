"""Recovers normalization by the root mean square."""

from burn_import.passes.norms.matching import (
    WEIGHT,
    Cast,
    Normalized,
    norm_builder,
    normalized,
    weighted_norm,
)
from burn_import.rewriting.pattern import Pattern, Rule, Value, either, fuse, product
from burn_ir.graph import Graph
from burn_ir.ops.fused import RMSNorm
from burn_ir.ops.norm import RMSNormalization

X = Value("x")
_KINDS = (RMSNorm, RMSNormalization)


def _cast_back(unit: Pattern) -> Pattern:
    """Return the cast of a norm in float32 back to a half type."""
    return Cast(unit, back=True)


_FUSED, _WIDE_FUSED = Normalized(X, RMSNorm), Normalized(Cast(X), RMSNorm)
_WEIGHTED = either(
    weighted_norm(X),
    product(_cast_back(normalized(Cast(X))), WEIGHT),
    # The norm without a weight was fused in an earlier round.
    product(_FUSED, WEIGHT),
    product(_cast_back(_WIDE_FUSED), WEIGHT),
)
RULES: tuple[Rule, ...] = (
    (_WEIGHTED, norm_builder(*_KINDS, "weight")),
    (either(normalized(X), _cast_back(normalized(Cast(X)))), norm_builder(*_KINDS)),
)


def rms_norm(graph: Graph) -> Graph:
    """Return ``graph`` with ``RMSNormalization`` for its decompositions.

    They compute ``x / sqrt(mean(x * x) + eps) * weight``, with the mean over the last
    axes. A weight is a constant with one element per feature; other factors stay nodes.
    Without a weight the result is ``RMSNorm``. Casts of half types to float32 and back
    belong to the operator, as ONNX defines it. Results may differ by rounding.
    """
    return fuse(graph, RULES, "ReduceMean", "RMSNorm")
