"""Dead code elimination."""

from burn.plan.passes.graph import Graph, Steps
from burn.plan.plan_ir import Step, slots_in


def without_dead(steps: Steps, graph: Graph) -> Steps:
    """The steps of which something is used, here or later.

    Primitives that are not ``removable`` stay: a function may have read how many
    elements their results have.
    """
    uses = graph.uses
    found: Steps = []
    for step in reversed(steps):
        used = any(uses[place] for place in step.outputs)
        if used or (isinstance(step, Step) and not step.primitive.removable):
            found.append(step)
        elif isinstance(step, Step):
            uses.subtract(slots_in(step.args))
    return found[::-1]
