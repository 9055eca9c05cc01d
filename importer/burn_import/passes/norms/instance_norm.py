"""Recovers instance normalization with a weight and a bias per channel."""

from burn.dtypes import is_float
from burn_import.passes.norms.group_norm import MARKS, Standard, channel_vector
from burn_import.rewriting.pattern import (
    Call,
    Match,
    Replacement,
    Rule,
    Search,
    Stored,
    Value,
    fuse,
    product,
)
from burn_ir.graph import Graph
from burn_ir.ops.norm import InstanceNormalization

_SCALED = product(Standard(Value("x")), Stored("weight"))


def _with_weights(match: Match, search: Search) -> Replacement:
    x = search.graph.type(match.values["x"])
    weight, bias = (
        channel_vector(label, match, search) for label in ("weight", "bias")
    )
    if x is None or not is_float(x.dtype) or weight is None or bias is None:
        return None
    op = InstanceNormalization(epsilon=match.numbers["epsilon"])
    return op, (match.values["x"], weight, bias)


RULES: tuple[Rule, ...] = ((Call("Add", _SCALED, Stored("bias")), _with_weights),)


def instance_norm(graph: Graph) -> Graph:
    """Return ``graph`` with ``InstanceNormalization`` for its decomposition.

    The decomposition is a normalization of each channel over the spatial axes, times a
    weight, plus a bias per channel. Results may differ by rounding.
    """
    return fuse(graph, RULES, *MARKS)
