"""Recovers HardSwish from its formula."""

from __future__ import annotations

from burn_import.rewriting.pattern import (
    Build,
    Call,
    Match,
    Number,
    Replacement,
    Rule,
    Search,
    Value,
    elementwise,
    fuse,
    product,
)
from burn_ir.graph import Graph
from burn_ir.ops.activation import HardSigmoid, HardSwish
from burn_ir.ops.options import non_default

X = Value("x")
_CLIPPED = Call("Clip", Call("Add", X, Number(3)), Number(0), Number(6))
_BUILD = elementwise(HardSwish())


def _by_slope(build: Build) -> Build:
    """Return a builder that accepts only a HardSigmoid with the slope of HardSwish."""

    def checked(match: Match, search: Search) -> Replacement:
        ops = [n.op for n in match.nodes if isinstance(n.op, HardSigmoid)]
        others = non_default(alpha=(ops[0].alpha, 1 / 6), beta=(ops[0].beta, 0.5))
        return None if others else build(match, search)

    return checked


RULES: tuple[Rule, ...] = (
    (product(_CLIPPED, Number(1 / 6), X), _BUILD),
    (product(Call("HardSigmoid", X), X), _by_slope(_BUILD)),
)


def hard_swish(graph: Graph) -> Graph:
    """Return ``graph`` with ``HardSwish`` for ``x * clip(x + 3, 0, 6) / 6``.

    ``x`` times the ``HardSigmoid`` of slope 1 / 6 is matched too. Results may differ by
    rounding.
    """
    return fuse(graph, RULES, "Clip", "HardSigmoid")
