"""Dead code elimination."""

from burn.dtypes import is_float
from burn.plan.passes.graph import Graph, Steps
from burn.plan.plan_ir import Slot, Step, slots_in


def without_dead(steps: Steps, graph: Graph) -> Steps:
    """The steps of which something is used, here or later.

    Those stay whose primitives may fail, or give results of another shape than at the
    recording: a function may have read how many elements there are.
    """
    uses = graph.uses
    kept_steps: Steps = []
    for step in reversed(steps):
        used = any(uses[index] for index in step.outputs)
        if used or (isinstance(step, Step) and not _may_go(step, graph)):
            kept_steps.append(step)
        elif isinstance(step, Step):
            uses.subtract(slots_in(step.args))
    return kept_steps[::-1]


def _may_go(step: Step, graph: Graph) -> bool:
    """Whether a call does nothing but compute results whose shapes are known."""
    position = step.primitive.shaped_by
    if position is not None and list(slots_in(step.args[position : position + 1])):
        return False
    if step.primitive.removable:
        return True
    operands = [graph.known(Slot(slot))[1] for slot in slots_in(step.args)]
    return step.primitive.infallible and all(
        dtype is not None and is_float(dtype) for dtype in (*operands, *step.dtypes)
    )
