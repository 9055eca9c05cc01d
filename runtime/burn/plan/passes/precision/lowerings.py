"""The passes that lower the precision of a plan from float32, by its name."""

from collections.abc import Callable

from burn.plan.passes.dead_code import without_dead
from burn.plan.passes.graph import Graph, Steps
from burn.plan.passes.precision.bfloat16 import BFLOAT16, lower_to_bfloat16
from burn.plan.passes.precision.integers import (
    LAYERS,
    form_integer_layers,
    fuse_activations,
    fuse_requantization,
    fuse_sums,
    hoist_quantization,
    simplify_scalings,
)
from burn.plan.plan_ir import Segment, Step

LOWERINGS: dict[str, tuple[Callable[[Steps, Graph], Steps], ...]] = {
    "bf16": (lower_to_bfloat16,),
    "int8": (
        *(
            form_integer_layers,
            fuse_sums,
            fuse_activations,
            hoist_quantization,
            hoist_quantization,
        ),
        form_integer_layers,
        *(fuse_requantization, simplify_scalings, without_dead),
    ),
}


def is_lowered(segment: Segment) -> bool:
    """Return whether a plan contains a step of less than float32 precision."""
    steps = (step for step in segment.steps if isinstance(step, Step))
    return any(
        BFLOAT16 in step.dtypes or step.primitive in LAYERS.values() for step in steps
    ) or any(map(is_lowered, segment.children.values()))
