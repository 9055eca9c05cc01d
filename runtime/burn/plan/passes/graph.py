"""Producers, consumers and constants of a plan, for passes."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeAlias

import numpy as np

from burn.plan.plan_ir import Read, Segment, Slot, Step, boxes_written, slots_in
from burn.primitive import Primitive
from burn.tensor import Tensor

Steps: TypeAlias = list[Step | Read]
#: The shapes and dtypes of the inputs, which have the first places.
Inputs: TypeAlias = Sequence[tuple[tuple[int, ...], Any]]

FLOAT32 = np.dtype(np.float32)
#: Returns a producer and the replacement of it and the step; None for no match.
Rule: TypeAlias = Callable[[Step, "Graph"], tuple[Step, list[Step]] | None]
#: A function from the steps of a segment to new ones.
Pass: TypeAlias = Callable[[Steps, "Graph"], Steps]
_NEITHER: tuple[None, None] = (None, None)


class Graph:
    """The producer, the consumers and known properties of each slot of a plan.

    ``constant`` are the places whose values depend on boxes alone, except boxes that
    change between runs. ``dtype`` is the element type of the steps that passes rewrite.
    """

    def __init__(
        self, root: Segment, inputs: Inputs = (), dtype: Any = FLOAT32
    ) -> None:
        self._inputs, self.dtype = inputs, dtype
        self.uses: Counter[int] = Counter()
        self.constant: set[int] = set()
        self.maker: dict[int, Step | Read] = {}
        #: The names of the primitives of the steps.
        self.primitives: set[str] = set()
        self._users: dict[int, Step] = {}
        self._next = 0
        #: The number of steps that ``made`` returned; some may not be in the plan yet.
        self.new_steps = 0
        self._written = {*boxes_written(root), *root.varying}
        self._visit(root)

    def _visit(self, segment: Segment) -> None:
        for step in segment.steps:
            places: tuple[int, ...] = ()
            if isinstance(step, Step):
                self.primitives.add(step.primitive.name)
                places = step.operand_places
                for index in places:
                    self.uses[index] += 1
                    self._users[index] = step
            for index in step.outputs:
                self.maker[index] = step
            changes = isinstance(step, Read) and step.box in self._written
            if self.constant.issuperset(places) and not changes:
                self.constant.update(step.outputs)
            self._next = max(self._next, *step.outputs, *places, self._next)
        self.uses.update(slots_in(segment.ends))
        self._next = max(self._next, *slots_in(segment.ends), self._next)
        if segment.guard is not None:
            self.uses[segment.guard] += 1
        for child in segment.children.values():
            self._visit(child)

    def known(self, value: Any) -> tuple[tuple[int, ...], Any] | tuple[None, None]:
        """Return the shape and dtype of an argument, or None for both if unknown."""
        if type(value) is Tensor:
            return value.shape, value.dtype
        maker = self.maker.get(value.place) if type(value) is Slot else None
        if isinstance(maker, Read):
            return maker.box.shape, maker.box.dtype
        if maker is None:
            is_input = type(value) is Slot and value.place < len(self._inputs)
            return self._inputs[value.place] if is_input else _NEITHER
        number = maker.outputs.index(value.place)
        return maker.shapes[number], maker.dtypes[number]

    def is_constant(self, value: Any) -> bool:
        """Return whether an argument is the same in every run."""
        if type(value) is Slot:
            return value.place in self.constant
        return type(value) is Tensor or value is None

    def only_use(self, value: Any) -> "Step | None":
        """Return the producer of an argument that has exactly one use, else None."""
        if type(value) is not Slot or self.uses[value.place] != 1:
            return None
        maker = self.maker.get(value.place)
        return maker if isinstance(maker, Step) else None

    def only_user(self, index: int) -> "Step | None":
        """Return the consumer of a slot that has exactly one use, else None."""
        return self._users.get(index) if self.uses[index] == 1 else None

    def fresh(self) -> int:
        """Return the number of an unused slot."""
        self._next += 1
        return self._next

    def is_folded(self, step: Step) -> bool:
        """Return whether the results of ``step`` depend on boxes alone."""
        return self.constant.issuperset(step.outputs)

    def new_step(
        self,
        primitive: Primitive[..., Any],
        args: tuple[Any, ...],
        shape: tuple[int, ...],
        **static: Any,
    ) -> Step:
        """Return a new step with a result of ``shape`` and ``dtype`` in a new slot."""
        step = Step(primitive, args, static, (self.fresh(),), (shape,), (self.dtype,))
        self.maker[self._next] = step
        self.primitives.add(primitive.name)
        self.new_steps += 1
        self.uses.update(slots_in(args))
        if all(index in self.constant for index in slots_in(args)):
            self.constant.add(self._next)
        return step


def replace_steps(
    steps: Steps, graph: Graph, rule: Callable[[Step, Graph], list[Step] | None]
) -> Steps:
    """Return the steps after ``rule`` has replaced single steps."""
    new_steps: Steps = []
    for step in steps:
        changed = rule(step, graph) if isinstance(step, Step) else None
        new_steps.extend([step] if changed is None else changed)
    return new_steps


def replace_pairs(steps: Steps, graph: Graph, rule: Rule) -> Steps:
    """Return the steps after ``rule`` has replaced pairs of producer and consumer."""
    new_steps: Steps = []
    gone: set[int] = set()
    for step in steps:
        pair = rule(step, graph) if isinstance(step, Step) else None
        if pair is None:
            new_steps.append(step)
            continue
        before, changed = pair
        gone.add(id(before))
        for new in changed:
            graph.maker.update(dict.fromkeys(new.outputs, new))
        new_steps.extend(changed)
    return [step for step in new_steps if id(step) not in gone]


def step_rule(rule: Callable[[Step, Graph], list[Step] | None]) -> Pass:
    """Return the pass that replaces each step by the result of ``rule``.

    None leaves a step as it is.
    """

    @wraps(rule)
    def apply(steps: Steps, graph: Graph) -> Steps:
        return replace_steps(steps, graph, rule)

    return apply


def pair_rule(rule: Rule) -> Pass:
    """Return the pass that replaces pairs of steps by ``rule``.

    It returns the first step of a pair and the replacement of both, or None.
    """

    @wraps(rule)
    def apply(steps: Steps, graph: Graph) -> Steps:
        return replace_pairs(steps, graph, rule)

    return apply


def swapped_axes(step: Step) -> tuple[int, ...]:
    """Return the two axes that a transpose swaps, which may be equal."""
    rank = len(step.shapes[0])
    return tuple(axis % rank for axis in (*step.args[1:], *step.static.values()))


def is_same(one: Any, other: Any) -> bool:
    """Return whether two arguments are one value; ``==`` cannot compare tensors."""
    both = type(one) is Slot and type(other) is Slot
    return one is other or (both and one == other)
