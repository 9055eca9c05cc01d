"""Input-independent steps first, so that all later steps can use their results."""

from burn.plan.passes.graph import Graph, Steps


def constants_first(steps: Steps, graph: Graph) -> Steps:
    """What follows from boxes alone, and then the rest."""
    constant = graph.constant.issuperset
    early = [step for step in steps if constant(step.outputs)]
    return early + [step for step in steps if not constant(step.outputs)]
