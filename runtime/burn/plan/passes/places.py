"""Branches of a plan use the same places for other values: each gets its own."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

from burn.backend.base import map_structure
from burn.plan.plan_ir import Lifted, Read, Segment, Slot, Step, slots_in
from burn.plan.pytree import mapped


def with_own_places(root: Segment) -> Segment:
    """A copy of a plan in which a place is one value, in whatever branch it is made.

    Inputs stay where they are. What is known of a place is true in the whole plan then,
    and nobody else grows the copy.
    """
    return _copied(root, {}, count(last_place(root) + 1))


def last_place(segment: Segment) -> int:
    """The largest place in ``segment`` or later."""
    places = [0, *slots_in(segment.ends), *map(last_place, segment.children.values())]
    for step in segment.steps:
        places.extend(step.outputs)
        places.extend(slots_in(step.args) if isinstance(step, Step) else ())
    return max(places)


def _copied(segment: Segment, names: dict[int, int], fresh: Iterator[int]) -> Segment:
    names = dict(names)

    def renamed(leaf: Any) -> Any:
        if type(leaf) is Lifted:
            return replace(leaf, value=renamed(leaf.value))
        if type(leaf) is not Slot:
            return leaf
        return Slot(names.get(leaf.place, leaf.place))

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
            value: _copied(child, names, fresh)
            for value, child in segment.children.items()
        },
        result=mapped(renamed, segment.result),
        writes={box: renamed(slot) for box, slot in segment.writes.items()},
        varying=segment.varying,
    )
