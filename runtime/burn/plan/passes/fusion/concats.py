"""Concatenations that read the operands of other concatenations.

Each layer of a dense block (DenseNet) concatenates its result with the previous
concatenation. A device that normalizes and concatenates in one pass over memory need
not write these intermediate results if each concatenation reads the original operands.
"""

from collections.abc import Iterator
from typing import Any

from burn.ops.fused import batch_norm_then
from burn.ops.norm import batch_norm
from burn.ops.shape import concat
from burn.plan.passes.graph import Graph, Steps, replace_steps
from burn.plan.plan_ir import Slot, Step
from burn.structs import replace

_NORMS = (batch_norm, batch_norm_then)


def with_flat_concats(steps: Steps, graph: Graph) -> Steps:
    """Replace operands of concatenations of channels that batch norms read."""
    normalized = {
        step.args[0].place
        for step in steps
        if isinstance(step, Step)
        and step.primitive in _NORMS
        and type(step.args[0]) is Slot
    }

    def flat(step: Step, graph: Graph) -> list[Step] | None:
        if not _joins_channels(step) or normalized.isdisjoint(step.outputs):
            return None
        changed = replace(step, args=(list(_parts(step, graph)), *step.args[1:]))
        graph.maker[step.outputs[0]] = changed
        return [changed]

    return replace_steps(steps, graph, flat)


def _joins_channels(step: Step) -> bool:
    axis = (*step.args[1:], step.static.get("axis", 0))[0]
    return step.primitive is concat and type(axis) is int and axis == 1


def _parts(step: Step, graph: Graph) -> Iterator[Any]:
    """Yield the operands, and those of concatenations in place of their results."""
    for part in step.args[0]:
        maker = graph.maker.get(part.place) if type(part) is Slot else None
        if isinstance(maker, Step) and _joins_channels(maker):
            yield from _parts(maker, graph)
        else:
            yield part
