"""Fusion of two steps with the same operands into one step with two results."""

from typing import Any

from burn.ops.conv import conv_weight_grad
from burn.ops.fused import conv_grads, max_pool_with_places
from burn.ops.pool import max_pool, window_argmax
from burn.ops.reduction import sum as sum_
from burn.ops.support import axes_of, plain_integers
from burn.plan.passes.graph import FLOAT32, Graph, Steps
from burn.plan.plan_ir import Read, Slot, Step
from burn.structs import replace


def fuse_pairs(steps: Steps, graph: Graph) -> Steps:
    """Fuse gradients of weights and biases, and pooling values and indices."""
    new_steps: list[Step | Read | None] = list(steps)
    positions: dict[Any, int] = {}
    for position, step in enumerate(steps):
        if not isinstance(step, Step):
            continue
        if step.primitive is conv_weight_grad and type(step.args[1]) is Slot:
            positions[conv_weight_grad, step.args[1].place] = position
        elif step.primitive is max_pool:
            positions[max_pool, step.outputs[0]] = position
        first = positions.get(_pair_key(step, graph))
        before = None if first is None else new_steps[first]
        if first is None or not isinstance(before, Step) or not _can_pair(before, step):
            continue
        new_steps[first], new_steps[position] = _paired_step(before, step), None
    return [step for step in new_steps if step is not None]


def _pair_key(step: Step, graph: Graph) -> Any:
    """Return the key under which the other step of a pair is found."""
    if step.primitive is window_argmax and type(step.args[1]) is Slot:
        return max_pool, step.args[1].place
    if step.primitive is not sum_ or type(step.args[0]) is not Slot:
        return None
    shape, dtype = graph.known(step.args[0])
    if shape is None or dtype != FLOAT32 or step.static.get("keepdims"):
        return None
    axes = (*step.args[1:], step.static.get("axis"))[0]
    if not plain_integers(axes):  # one axis alone, or axes that are computed
        return None
    if {*axes_of(axes, len(shape))} != {*range(len(shape))} - {1}:
        return None
    return conv_weight_grad, step.args[0].place


def _can_pair(before: Step, step: Step) -> bool:
    if before.primitive is max_pool:
        return before.static == step.static and before.args[0] == step.args[0]
    return before.primitive is conv_weight_grad and before.dtypes == (FLOAT32,)


def _paired_step(before: Step, step: Step) -> Step:
    return replace(
        before,
        primitive=max_pool_with_places if before.primitive is max_pool else conv_grads,
        outputs=before.outputs + step.outputs,
        shapes=before.shapes + step.shapes,
        dtypes=before.dtypes + step.dtypes,
    )
