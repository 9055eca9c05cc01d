"""Dead code elimination."""

from burn.dtypes import is_float
from burn.plan.passes.graph import Graph, Steps
from burn.plan.plan_ir import Slot, Step, slots_in


def without_dead(steps: Steps, graph: Graph) -> Steps:
    """Return the steps whose results are used in this segment or a later one.

    Steps that may fail, or whose result shapes may differ from the recording, are kept:
    the function may have read the number of elements.
    """
    uses = graph.uses
    kept_steps: Steps = []
    for step in reversed(steps):
        used = any(uses[index] for index in step.outputs)
        if used or (isinstance(step, Step) and not _may_go(step, graph)):
            kept_steps.append(step)
        elif isinstance(step, Step):
            uses.subtract(step.operand_places)
    return kept_steps[::-1]


def _may_go(step: Step, graph: Graph) -> bool:
    """Return whether a call only computes results of known shapes."""
    position = step.primitive.shaped_by
    if position is not None and slots_in(step.args[position : position + 1]):
        return False
    if step.primitive.removable:
        return True
    operands = [graph.known(Slot(slot))[1] for slot in step.operand_places]
    return step.primitive.infallible and all(
        dtype is not None and is_float(dtype) for dtype in (*operands, *step.dtypes)
    )
