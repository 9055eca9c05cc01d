"""In which order of axes results are best written, because of what reads them."""

from collections import Counter

from burn.ops.shape import permute, transpose
from burn.ops.support import axes_of
from burn.plan.tree import Segment, Slot, Step, slots_in


def wanted_orders(segment: Segment) -> dict[int, tuple[int, ...]]:
    """The axes from the slowest to the fastest, by place.

    What is only read with its axes in another order is row-major after that, so that
    it needs no copy.
    """
    uses = Counter(slots_in(segment.result))
    for step in segment.steps:
        if isinstance(step, Step):
            uses.update(slots_in(step.args))
    found: dict[int, tuple[int, ...]] = {}
    for step in segment.steps:
        if isinstance(step, Step) and step.args and type(step.args[0]) is Slot:
            place = step.args[0].place
            order = _order(step)
            if order is not None and uses[place] == 1:
                found[place] = order
    return found


def _order(step: Step) -> tuple[int, ...] | None:
    """The order of axes of the operand that makes the result row-major."""
    rank = len(step.shapes[0])
    axes = list(range(rank))
    if step.primitive is transpose:
        first, second = (
            axes_of(step.args[1:], rank) if len(set(step.args[1:])) > 1 else (0, 0)
        )
        axes[first], axes[second] = axes[second], axes[first]
        return tuple(axes)
    if step.primitive is permute:
        given = (*step.args[1:], step.static.get("axes"))[0]
        return tuple(axes[::-1]) if given is None else axes_of(given, rank)
    return None
