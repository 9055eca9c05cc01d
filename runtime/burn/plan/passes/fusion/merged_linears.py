"""Fusion of linear layers with the same input (query, key, value) into one product."""

from math import prod
from typing import Any, TypeGuard

from burn.ops.matmul import linear
from burn.ops.shape import concat, split
from burn.plan.passes.fusion.epilogue_fusion import is_activation_step
from burn.plan.passes.graph import Graph, Steps, is_same
from burn.plan.plan_ir import Read, Slot, Step
from burn.structs import replace

#: The maximum number of multiplications of a merged layer. For larger layers the call
#: overhead is negligible, and attention is faster on separate matrices.
MOST = 8_000_000


def merge_layers(steps: Steps, graph: Graph, most: float = MOST) -> Steps:
    """Merge layers with the same input into one layer and a split of its result.

    Layers of more than ``most`` multiplications are not merged.
    """
    groups = _groups([s for s in steps if _may_be_merged(s, graph, most)])
    first = {id(group[0]): group for group in groups if len(group) > 1}
    others = {id(step) for group in first.values() for step in group}
    outputs = _result_slots(steps)
    new_steps: Steps = []
    for step in steps:
        group = first.get(id(step))
        if group is not None and _are_ready(group, new_steps, outputs):
            new_steps.extend(_merge_group(group, graph))
        elif group is not None:
            others -= {id(member) for member in group}
            new_steps.append(step)
        elif id(step) not in others:
            new_steps.append(step)
    return new_steps


def _groups(layers: list[Step]) -> list[list[Step]]:
    """Return groups of layers with the same input and different weights.

    A layer that is recomputed (activation checkpointing) is in a group of its own:
    merged with its first computation, its result would be stored until then.
    """
    groups: dict[Any, list[list[Step]]] = {}
    for step in layers:
        has_bias = len(step.args) > 2 and step.args[2] is not None
        of_input = groups.setdefault((step.args[0].place, has_bias), [[]])
        if any(is_same(step.args[1], other.args[1]) for other in of_input[-1]):
            of_input.append([])
        of_input[-1].append(step)
    return [group for of_input in groups.values() for group in of_input]


def _may_be_merged(step: Step | Read, graph: Graph, most: float) -> TypeGuard[Step]:
    if not isinstance(step, Step) or step.primitive is not linear:
        return False
    if step.dtypes != (graph.dtype,):
        return False
    x, *constants = step.args
    width = (graph.known(x)[0] or (0,))[-1]
    if prod(step.shapes[0]) * width > most:
        return False
    user = graph.only_user(step.outputs[0])
    return (user is None or not is_activation_step(user, graph)) and (
        type(x) is Slot
        and x.place not in graph.constant
        and graph.known(constants[0])[1] == graph.dtype
        and all(map(graph.is_constant, constants))
    )


def _result_slots(steps: Steps) -> set[int]:
    return {index for step in steps for index in step.outputs}


def _are_ready(group: list[Step], before: Steps, here: set[int]) -> bool:
    """Return whether all weights of a group are available at its first layer."""
    available = _result_slots(before)
    return all(
        type(arg) is not Slot or arg.place in available or arg.place not in here
        for step in group
        for arg in step.args
    )


def _merge_group(group: list[Step], graph: Graph) -> list[Step]:
    """Return one layer and a split that replace the layers of a group."""
    widths = [step.shapes[0][-1] for step in group]
    total, inputs = sum(widths), graph.known(group[0].args[1])[0]
    assert inputs is not None
    weight = graph.new_step(
        concat, ([step.args[1] for step in group], 0), (total, inputs[1])
    )
    args: list[Any] = [group[0].args[0], Slot(weight.outputs[0])]
    new_steps = [weight]
    if len(group[0].args) > 2 and group[0].args[2] is not None:
        bias = graph.new_step(concat, ([step.args[2] for step in group], 0), (total,))
        args.append(Slot(bias.outputs[0]))
        new_steps.append(bias)
    shape = (*group[0].shapes[0][:-1], total)
    layer = graph.new_step(linear, tuple(args), shape)
    parts = replace(
        group[0],
        primitive=split,
        args=(Slot(layer.outputs[0]), widths, -1),
        static={},
        outputs=tuple(step.outputs[0] for step in group),
        shapes=tuple(step.shapes[0] for step in group),
        dtypes=tuple(step.dtypes[0] for step in group),
    )
    return [*new_steps, layer, parts]
