"""Horizontal fusion: equal elementwise steps on many tensors become one step.

The update of an optimizer has a few steps for each of hundreds of parameters.
"""

from collections import defaultdict
from math import prod
from typing import Any

from burn.ops.elements import elements, elements_of_many
from burn.plan.passes.graph import Graph, Steps, is_same
from burn.plan.plan_ir import Slot, Step

#: The least number of steps that are worth a kernel for many tensors.
LEAST = 4


class _Group:
    """Positions of steps that one kernel may compute where the last of them is.

    It is closed when a step reads the result of a member.
    """

    def __init__(self) -> None:
        self.positions: list[int] = []
        self.is_closed = False


def fuse_horizontally(steps: Steps, graph: Graph) -> Steps:
    """Fuse elementwise steps that differ in their tensors alone, and are independent.

    Steps that only elementwise steps depend on are moved to the end, by how many of
    these precede them.
    """
    steps = _sink(steps)
    groups = [g for g in _groups(steps, graph) if len(g.positions) >= LEAST]
    ends = {group.positions[-1]: group for group in groups}
    joined = {position for group in groups for position in group.positions}
    fused: Steps = []
    for position, step in enumerate(steps):
        if position in ends:
            members = [steps[each] for each in ends[position].positions]
            fused.append(_joined([s for s in members if isinstance(s, Step)], graph))
        elif position not in joined:
            fused.append(step)
    return fused


def _groups(steps: Steps, graph: Graph) -> list[_Group]:
    """Return the groups of elementwise steps, in the order of their first members."""
    groups: list[_Group] = []
    latest: dict[Any, _Group] = {}
    owners: dict[int, _Group] = {}
    for position, step in enumerate(steps):
        if not isinstance(step, Step):
            continue
        for slot in step.operand_places:
            if slot in owners:
                owners[slot].is_closed = True
        kind = _kind_of(step, graph) if step.primitive is elements else None
        if kind is None:
            continue
        if kind not in latest or latest[kind].is_closed:
            latest[kind] = _Group()
            groups.append(latest[kind])
        latest[kind].positions.append(position)
        owners[step.outputs[0]] = latest[kind]
    return groups


def _sink(steps: Steps) -> Steps:
    """Return the steps with those that only elementwise steps depend on at the end."""
    needed, late = set[int](), list[Step]()
    for step in reversed(steps):
        if not isinstance(step, Step):
            continue
        if step.primitive is elements and needed.isdisjoint(step.outputs):
            late.append(step)
        else:
            needed.update(step.operand_places)
    level: dict[int, int] = {}
    by_level: dict[int, list[Step]] = defaultdict(list)
    for step in reversed(late):
        depth = max((level.get(slot, 0) for slot in step.operand_places), default=0)
        level[step.outputs[0]] = depth + 1
        by_level[depth].append(step)
    moved = set(map(id, late))
    first = [step for step in steps if id(step) not in moved]
    return [*first, *(step for depth in sorted(by_level) for step in by_level[depth])]


def _kind_of(step: Step, graph: Graph) -> Any:
    """Return what steps of one group have in common, None if it is in no group.

    That is the expression, the types of operands that have the shape of the result, and
    the other operands, which have one element.
    """
    forms: list[Any] = []
    for arg in step.args:
        shape, dtype = graph.known(arg)
        if shape == step.shapes[0] and type(arg) is Slot:
            forms.append(dtype)
        elif shape is not None and prod(shape) == 1:
            forms.append((dtype, arg.place if type(arg) is Slot else id(arg)))
        else:
            return None
    if all(type(form) is tuple for form in forms):
        return None
    return step.static["element"], tuple(forms)


def _joined(members: list[Step], graph: Graph) -> Step:
    """Return one step that computes all ``members``."""
    args: list[Any] = []
    for values in zip(*(step.args for step in members), strict=True):
        shape, _ = graph.known(values[0])
        is_shared = shape != members[0].shapes[0] or type(values[0]) is not Slot
        if is_shared:
            assert all(is_same(values[0], value) for value in values)
        args.append(values[0] if is_shared else list(values))
    return Step(
        elements_of_many,
        tuple(args),
        members[0].static,
        tuple(step.outputs[0] for step in members),
        tuple(step.shapes[0] for step in members),
        tuple(step.dtypes[0] for step in members),
        any(step.is_backward for step in members),
    )
