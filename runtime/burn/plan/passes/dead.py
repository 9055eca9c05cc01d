"""Dead code elimination."""

from burn.plan.passes.graph import Graph, Steps
from burn.plan.plan_ir import Step, slots_in


def without_dead(steps: Steps, graph: Graph) -> Steps:
    """The steps of which something is used, here or later.

    Primitives that are not ``removable`` stay: a function may have read how many
    elements their results have.
    """
    uses = graph.uses
    kept_steps: Steps = []
    for step in reversed(steps):
        used = any(uses[index] for index in step.outputs)
        if used or (isinstance(step, Step) and not step.primitive.removable):
            kept_steps.append(step)
        elif isinstance(step, Step):
            uses.subtract(slots_in(step.args))
    return kept_steps[::-1]
