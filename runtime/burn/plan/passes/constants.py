"""What does not depend on a call comes first, so that whatever is later can use it."""

from burn.plan.passes.graph import Graph, Steps


def constants_first(steps: Steps, graph: Graph) -> Steps:
    """What follows from boxes alone, and then the rest."""
    constant = graph.constant.issuperset
    early = [step for step in steps if constant(step.outputs)]
    return early + [step for step in steps if not constant(step.outputs)]
