"""Plans with branches as straight parts, which are plans of their own.

A device that repeats straight plans alone, as CUDA graphs, binds each part. Between two
parts the host reads a value, or a step runs that the device cannot repeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from burn.plan.executable import Plan
from burn.plan.passes.graph import Graph, Steps
from burn.plan.passes.unique_slots import with_inputs, with_unique_slots
from burn.plan.plan_ir import (
    Read,
    Segment,
    Slot,
    Step,
    boxes_written,
    find_drops,
    slots_in,
)
from burn.structs import replace


@dataclass(frozen=True)
class Part:
    """Consecutive steps of a plan, and the parts that may follow.

    ``plan`` computes ``count`` steps from the values at the places ``takes`` of the
    whole plan. Its result is the tuple of the values at ``gives``, in a last part the
    result of the function. The next part is ``then`` or, with a ``guard``, the child
    for the bytes of the value at that place. ``reads`` are the places that this part
    and later ones read. ``is_cut`` marks a step at which the plan was cut.
    """

    plan: Plan
    count: int
    takes: tuple[int, ...]
    gives: tuple[int, ...]
    guard: int | None
    children: dict[bytes, Part]
    then: Part | None
    reads: frozenset[int]
    is_cut: bool

    @property
    def is_last(self) -> bool:
        return self.guard is None and self.then is None


def parts_of(plan: Plan, cuts: Iterable[int] = ()) -> Part:
    """Return the first part of ``plan``.

    Parts end at guards. The steps of the first segment with the numbers ``cuts`` are
    parts of their own. Steps that depend on boxes alone are in each part that needs
    them, so that they stay constants.
    """
    return _Splitter(plan, set(cuts)).first()


class _Splitter:
    """The steps of a plan by place, to be put into parts."""

    def __init__(self, plan: Plan, cuts: set[int]) -> None:
        self._plan, self._root = plan, with_unique_slots(plan.root)
        self._graph = Graph(self._root, plan.inputs)
        self._written = frozenset(boxes_written(self._root))
        self._cuts = {id(self._root.steps[number]) for number in cuts}
        self._shared = list(filter(self._is_shared, _all_steps(self._root)))
        self._shared_places = {p for step in self._shared for p in step.outputs}

    def _is_shared(self, step: Step | Read) -> bool:
        return isinstance(step, Read) or self._graph.is_folded(step)

    def first(self) -> Part:
        """Return the part of the first steps."""
        return self._parts(self._root)

    def _parts(self, segment: Segment) -> Part:
        """Return the first part of a segment, with those that follow."""
        groups: list[Steps] = [[]]
        for step in segment.steps:
            if self._is_shared(step):
                continue
            last = groups[-1]
            if last and (id(step) in self._cuts or id(last[-1]) in self._cuts):
                groups.append([])
            groups[-1].append(step)
        children = {v: self._parts(child) for v, child in segment.children.items()}
        part = self._part(groups.pop(), segment, children)
        while groups:
            part = self._part(groups.pop(), Segment(), {}, part)
        return part

    def _part(
        self,
        steps: Steps,
        end: Segment,
        children: dict[bytes, Part],
        then: Part | None = None,
    ) -> Part:
        """Return the part of ``steps``, which ends as ``end`` does."""
        later = {p for c in children.values() for p in c.reads}
        later |= set() if then is None else then.reads
        own = {place for step in steps for place in step.outputs}
        gives: tuple[int, ...] = ()
        result: Any = end.result
        if end.guard is not None:
            later.add(end.guard)
        if end.guard is not None or then is not None:
            # A value that depends on boxes alone is given only to be read on the host.
            gives = tuple(sorted(later & (own | ({end.guard} & self._shared_places))))
            result = tuple(map(Slot, gives))
        used = {*slots_in([result, list(end.writes.values())])}
        used.update(p for s in steps if isinstance(s, Step) for p in s.operand_places)
        takes = tuple(sorted(used - own - self._shared_places))
        root = Segment([*self._needed(used), *steps], result=result, writes=end.writes)
        is_cut = any(id(step) in self._cuts for step in steps)
        rest = (end.guard, children, then, frozenset(later.union(takes)), is_cut)
        return Part(self._plan_of(root, takes), len(steps), takes, gives, *rest)

    def _plan_of(self, segment: Segment, takes: tuple[int, ...]) -> Plan:
        """Return the plan of a part, whose inputs are the values at ``takes``."""
        segment.varying = self._written | self._root.varying
        root = with_inputs(segment, takes)
        find_drops(root)
        inputs = []
        for place in takes:
            shape, dtype = self._graph.known(Slot(place))
            assert shape is not None
            inputs.append((shape, dtype))
        differentiated = self._plan.has_gradients
        return replace(
            self._plan, root=root, inputs=inputs, is_differentiated=differentiated
        )

    def _needed(self, places: set[int]) -> Steps:
        """Return the shared steps on which ``places`` depend."""
        needed, steps = set(places), []
        for step in reversed(self._shared):
            if needed.isdisjoint(step.outputs):
                continue
            steps.append(step)
            if isinstance(step, Step):
                needed.update(step.operand_places)
        return steps[::-1]


def _all_steps(segment: Segment) -> Iterator[Step | Read]:
    yield from segment.steps
    for child in segment.children.values():
        yield from _all_steps(child)
