"""Steps that are one pass over memory: a convolution or a product, and what follows."""

from collections import Counter
from dataclasses import replace
from typing import Any

from burn.ops import activation
from burn.ops.conv import conv
from burn.ops.elementwise import add
from burn.ops.fused import conv_then, linear_then
from burn.ops.matmul import linear
from burn.plan.passes.graph import FLOAT32, Graph, Steps
from burn.plan.tree import Read, Slot, Step

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


def with_endings(steps: Steps, graph: Graph) -> Steps:
    """Convolutions and linear layers with the activations and sums after them."""
    found: list[Step | Read | None] = []
    made: dict[int, int] = {}  # where in ``found`` a place is made
    for step in steps:
        if isinstance(step, Step):
            joined = _joined(step, found, made, graph.uses)
            if joined is not None:
                position, step = joined
                found[position] = None
        for place in step.outputs:
            made[place] = len(found)
        found.append(step)
    return [step for step in found if step is not None]


def is_ending(step: Step) -> bool:
    """Whether ``step`` is an activation that becomes a part of what makes ``x``."""
    return step.primitive is not add and _after(step, 0) is not None


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
        if source.shapes != step.shapes or {*source.dtypes, *step.dtypes} != {FLOAT32}:
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
