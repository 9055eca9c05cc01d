"""What a model keeps from call to call stays of one type."""

from __future__ import annotations

from collections.abc import Iterator

from burn_ir.dim import Dim
from burn_ir.errors import Problem
from burn_ir.graph import Graph
from burn_ir.types import Type


def changed_states(graph: Graph) -> Iterator[Problem]:
    """The states that are of another type after a call than before it."""
    before = graph.inputs[len(graph.given) :]
    after = graph.outputs[len(graph.results) :]
    for state, name, result in zip(graph.states, before, after, strict=True):
        if result not in {*graph.types, *graph.constants}:
            continue  # one of the values that have problems
        old, new = graph.types[name], graph.types.get(result)
        new = new or Type.of(graph.constants[result])
        if old.dtype != new.dtype or _differ(old.shape, new.shape):
            yield Problem(
                f"expected state {state!r} to stay {old.name}, got {new.name}"
            )


def _differ(a: tuple[Dim, ...] | None, b: tuple[Dim, ...] | None) -> bool:
    """Whether two shapes cannot be the same."""
    if a is None or b is None:
        return False
    pairs = zip(a, b, strict=False)
    fixed = [(x, y) for x, y in pairs if isinstance(x, int) and isinstance(y, int)]
    return len(a) != len(b) or any(x != y for x, y in fixed)
