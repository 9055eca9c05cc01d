"""What boxes hold next is made last, so that a run that fails has changed nothing."""

from dataclasses import replace

import numpy as np

from burn.plan.tree import Segment, Step, slots_in


def with_updates_last(root: Segment) -> Segment:
    """A copy of a plan whose steps that make nothing but what is written come last."""
    children = {value: with_updates_last(c) for value, c in root.children.items()}
    root = replace(root, children=children)
    if root.guard is not None or not root.writes:
        return root
    needed = set(slots_in(root.result))
    late: list[Step] = []
    for step in reversed(root.steps):
        if isinstance(step, Step):
            if needed.isdisjoint(step.outputs) and _cannot_fail(step):
                late.append(step)
                continue
            needed.update(slots_in(step.args))
    ours = {id(step) for step in late}
    steps = [step for step in root.steps if id(step) not in ours] + late[::-1]
    return replace(root, steps=steps, late=len(late))


def _cannot_fail(step: Step) -> bool:
    floats = all(np.dtype(dtype).kind == "f" for dtype in step.dtypes)
    return floats and step.primitive.infallible
