"""Renaming of places so that each branch of a plan uses its own."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any

from burn.backend.base import map_structure
from burn.plan.plan_ir import Read, Segment, Slot, StackedResult, Step, slots_in
from burn.plan.pytree import mapped
from burn.structs import replace


def with_unique_slots(root: Segment) -> Segment:
    """Return a copy of a plan in which each slot has a single definition.

    Inputs keep their places. Facts about a place then hold in the whole plan, and the
    copy is independent of later recordings.
    """
    return _copy_segment(root, {}, count(last_slot(root) + 1))


def with_inputs(segment: Segment, places: Sequence[int]) -> Segment:
    """Return a copy of a segment whose inputs are the values at ``places``."""
    names = {place: number for number, place in enumerate(places)}
    return _copy_segment(segment, names, count(len(names)))


def last_slot(segment: Segment) -> int:
    """Return the largest place in ``segment`` or its successors."""
    places = [0, *slots_in(segment.ends), *map(last_slot, segment.children.values())]
    for step in segment.steps:
        places.extend(step.outputs)
        places.extend(step.operand_places if isinstance(step, Step) else ())
    return max(places)


def _copy_segment(
    segment: Segment, names: dict[int, int], fresh: Iterator[int]
) -> Segment:
    names = dict(names)
    renamed = partial(_rename_slot, names=names)
    steps: list[Step | Read] = []
    guard = segment.guard
    for step in segment.steps:
        outputs = tuple(next(fresh) for _ in step.outputs)
        if isinstance(step, Read):
            steps.append(replace(step, place=outputs[0]))
        else:
            args = map_structure(renamed, step.args)
            steps.append(replace(step, args=args, outputs=outputs))
        names.update(zip(step.outputs, outputs, strict=True))
    return Segment(
        steps,
        guard=guard if guard is None else names.get(guard, guard),
        children={
            value: _copy_segment(child, names, fresh)
            for value, child in segment.children.items()
        },
        result=mapped(renamed, segment.result),
        writes={box: renamed(slot) for box, slot in segment.writes.items()},
        varying=segment.varying,
    )


def _rename_slot(leaf: Any, names: dict[int, int]) -> Any:
    # Not a recursive closure, whose reference cycle would keep its values alive.
    if type(leaf) is StackedResult:
        return StackedResult(_rename_slot(leaf.value, names), leaf.backend)
    if type(leaf) is not Slot:
        return leaf
    return Slot(names.get(leaf.place, leaf.place))
