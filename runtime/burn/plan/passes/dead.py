"""What nobody reads is not computed."""

from burn.plan.passes.graph import Graph, Steps
from burn.plan.tree import Step, slots_in

#: Families whose results have shapes that follow from those of their operands. The
#: others stay: a function may have read how many elements there are.
_FAMILIES = (
    *("conv", "fused", "integers", "matmul", "norm", "pool", "quantize", "shape"),
)
_MODULES = frozenset(f"burn.ops.{name}" for name in _FAMILIES)


def without_dead(steps: Steps, graph: Graph) -> Steps:
    """The steps of which something is used, here or later."""
    uses = graph.uses
    found: Steps = []
    for step in reversed(steps):
        used = any(uses[place] for place in step.outputs)
        if used or (isinstance(step, Step) and not _may_go(step)):
            found.append(step)
        elif isinstance(step, Step):
            uses.subtract(slots_in(step.args))
    return found[::-1]


def _may_go(step: Step) -> bool:
    return step.primitive.__module__ in _MODULES
