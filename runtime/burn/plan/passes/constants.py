"""Reorder steps so that input-independent steps come first."""

from burn.plan.passes.graph import Graph, Steps


def hoist_constants(steps: Steps, graph: Graph) -> Steps:
    """Return the steps that depend on boxes alone, followed by the others."""
    constant = graph.constant.issuperset
    early = [step for step in steps if constant(step.outputs)]
    return early + [step for step in steps if not constant(step.outputs)]
