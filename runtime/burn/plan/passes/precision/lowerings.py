"""The passes that lower the precision of a plan from float32, by its name."""

from collections.abc import Callable

from burn.plan.passes.dead import without_dead
from burn.plan.passes.graph import Graph, Steps
from burn.plan.passes.precision.bfloat16 import BFLOAT16, narrowed
from burn.plan.passes.precision.integers import (
    LAYERS,
    of_integers,
    quantized_early,
    to_the_end,
    with_activations,
    with_floats,
    with_sums,
)
from burn.plan.plan_ir import Segment, Step

LOWERINGS: dict[str, tuple[Callable[[Steps, Graph], Steps], ...]] = {
    "bf16": (narrowed,),
    "int8": (
        *(of_integers, with_sums, with_activations, quantized_early, quantized_early),
        of_integers,
        *(to_the_end, with_floats, without_dead),
    ),
}


def is_lowered(segment: Segment) -> bool:
    """Return whether a plan contains a step of less than float32 precision."""
    steps = (step for step in segment.steps if isinstance(step, Step))
    return any(
        BFLOAT16 in step.dtypes or step.primitive in LAYERS.values() for step in steps
    ) or any(map(is_lowered, segment.children.values()))
