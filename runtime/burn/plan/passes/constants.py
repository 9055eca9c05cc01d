"""What does not depend on a call comes first, so that whatever is later can use it."""

from burn.plan.passes.graph import Graph, Steps


def constants_first(steps: Steps, graph: Graph) -> Steps:
    """What follows from boxes alone, and then the rest."""
    late = [step for step in steps if not graph.constant.issuperset(step.outputs)]
    if late == steps[len(steps) - len(late) :]:
        return steps
    return [step for step in steps if graph.constant.issuperset(step.outputs)] + late
