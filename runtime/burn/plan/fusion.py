"""Steps that are one pass over memory: a convolution or a product, and what follows."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from burn.ops import activation
from burn.ops.conv import conv
from burn.ops.elementwise import add
from burn.ops.fused import conv_then, linear_then
from burn.ops.matmul import linear
from burn.plan.tree import Read, Segment, Slot, Step, find_drops, slots_in

_FLOAT32 = np.dtype(np.float32)
#: What computes a primitive together with what follows it.
_THEN: dict[Any, Any] = {
    conv: conv_then,
    conv_then: conv_then,
    linear: linear_then,
    linear_then: linear_then,
}
_PLAIN = frozenset(
    {activation.relu, activation.sigmoid, activation.tanh, activation.silu}
    | {activation.hard_swish}
)


def fused(root: Segment) -> Segment:
    """A copy of a plan with fewer steps, which computes the same on finite numbers.

    ``root`` itself if there is nothing to join.
    """
    uses: Counter[int] = Counter()
    _count(root, uses)
    copy = _fused(root, uses)
    if _size(copy) == _size(root):
        return root
    find_drops(copy)
    return copy


def _size(segment: Segment) -> int:
    return len(segment.steps) + sum(map(_size, segment.children.values()))


def _count(segment: Segment, uses: "Counter[int]") -> None:
    for step in segment.steps:
        if isinstance(step, Step):
            uses.update(slots_in(step.args))
    uses.update(slots_in(segment.result))
    if segment.guard is not None:
        uses[segment.guard] += 1
    for child in segment.children.values():
        _count(child, uses)


def _fused(segment: Segment, uses: "Counter[int]") -> Segment:
    steps: list[Step | Read | None] = []
    made: dict[int, int] = {}  # where in ``steps`` a place is made
    for step in segment.steps:
        if isinstance(step, Step):
            joined = _joined(step, steps, made, uses)
            if joined is not None:
                position, step = joined
                steps[position] = None
        for place in step.outputs:
            made[place] = len(steps)
        steps.append(step)
    children = {value: _fused(child, uses) for value, child in segment.children.items()}
    return Segment(
        [step for step in steps if step is not None],
        *([], segment.guard, children, segment.result),
    )


def _joined(
    step: Step, steps: list[Any], made: dict[int, int], uses: "Counter[int]"
) -> tuple[int, Step] | None:
    """The position of the first and both in one; None if they have to stay two."""
    for index, arg in enumerate(step.args):
        position = made.get(arg.place) if type(arg) is Slot else None
        if position is None or uses[arg.place] != 1:
            continue
        source = steps[position]
        if not isinstance(source, Step) or source.primitive not in _THEN:
            continue
        if source.shapes != step.shapes or {*source.dtypes, *step.dtypes} != {_FLOAT32}:
            continue
        after = _after(step, index)
        if after is None:
            continue
        args = [*source.args, *(None for _ in range(4 - len(source.args)))]
        if after == ("add",):
            args[3] = other = step.args[1 - index]
            if after in _done(source) or not _is_like(step, other, steps, made):
                continue
        static = {**source.static, "after": (*_done(source), after)}
        changed = replace(
            step, primitive=_THEN[source.primitive], args=tuple(args), static=static
        )
        return position, changed
    return None


def _is_like(step: Step, other: Slot, steps: list[Any], made: dict[int, int]) -> bool:
    """Whether ``other`` is known to be of the shape and dtype of a step's result."""
    source = steps[made[other.place]] if other.place in made else None
    if not isinstance(source, Step):
        return False
    number = source.outputs.index(other.place)
    return (source.shapes[number], source.dtypes[number]) == (
        *step.shapes,
        *step.dtypes,
    )


def _done(step: Step) -> tuple[Any, ...]:
    """What ``step`` is followed by already."""
    done: tuple[Any, ...] = step.static.get("after", ())
    return done


def _after(step: Step, index: int) -> tuple[Any, ...] | None:
    """``step`` as the end of what makes its operand ``index``."""
    if step.primitive in _PLAIN:
        return (step.primitive.name,)
    if step.primitive is activation.gelu:
        tanh = step.static.get("approximate") == "tanh"
        return ("gelu_tanh",) if tanh else ("gelu",)
    if step.primitive is activation.leaky_relu:
        return ("leaky_relu", float(step.static.get("alpha", 0.01)))
    if step.primitive is activation.clip and index == 0:
        bounds = step.args[1:]
        if len(bounds) == 2 and all(type(bound) in (int, float) for bound in bounds):
            return ("clip", *map(float, bounds))
    if step.primitive is add and len(step.args) == 2:
        other = step.args[1 - index]
        if type(other) is Slot:
            return ("add",)
    return None
