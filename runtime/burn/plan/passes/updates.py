"""State updates at the end of a plan, so that a run that fails changes no state."""

import numpy as np

from burn.plan.plan_ir import Segment, Step, slots_in
from burn.structs import replace


def sink_updates(root: Segment) -> Segment:
    """Return the plan with all state updates moved to the end."""
    children = {value: sink_updates(c) for value, c in root.children.items()}
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
            needed.update(step.operand_places)
    ours = {id(step) for step in late}
    steps = [step for step in root.steps if id(step) not in ours] + late[::-1]
    return replace(root, steps=steps, late=len(late))


def _cannot_fail(step: Step) -> bool:
    floats = all(np.dtype(dtype).kind == "f" for dtype in step.dtypes)
    return floats and step.primitive.infallible
