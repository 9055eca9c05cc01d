"""The check that states keep their types from call to call."""

from __future__ import annotations

from collections.abc import Iterator

from burn_ir.dim import Dim
from burn_ir.errors import Problem
from burn_ir.graph import Graph
from burn_ir.types import Type


def changed_states(graph: Graph) -> Iterator[Problem]:
    """Yield a problem for each state whose type changes in a call."""
    before = graph.inputs[len(graph.arguments) :]
    after = graph.outputs[len(graph.results) :]
    for state, name, result in zip(graph.states, before, after, strict=True):
        if result not in {*graph.types, *graph.constants}:
            continue  # already reported as a problem
        old, new = graph.types[name], graph.types.get(result)
        new = new or Type.of(graph.constants[result])
        if old.dtype != new.dtype or _differ(old.shape, new.shape):
            yield Problem(
                f"expected state {state!r} to stay {old.name}, got {new.name}"
            )


def _differ(a: tuple[Dim, ...] | None, b: tuple[Dim, ...] | None) -> bool:
    """Return whether two shapes are certainly different."""
    if a is None or b is None:
        return False
    pairs = zip(a, b, strict=False)
    fixed = [(x, y) for x, y in pairs if isinstance(x, int) and isinstance(y, int)]
    return len(a) != len(b) or any(x != y for x, y in fixed)
