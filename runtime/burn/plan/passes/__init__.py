"""Optimization passes over plans, which preserve the results for finite numbers.

Each is in a file of its own, and takes the steps of one segment after the other.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import is_
from typing import Any, TypeAlias

from burn.plan.passes.constants import constants_first
from burn.plan.passes.dead import without_dead
from burn.plan.passes.fusion.cells import as_cells
from burn.plan.passes.fusion.chains import in_chains
from burn.plan.passes.fusion.contractions import as_products
from burn.plan.passes.fusion.epilogue_fusion import THEN_WITH_NORMS, with_endings
from burn.plan.passes.fusion.layers import as_layers, unflattened, with_biases
from burn.plan.passes.fusion.merging import merged
from burn.plan.passes.fusion.norms import without_norms
from burn.plan.passes.fusion.norms_ahead import with_norms_ahead
from burn.plan.passes.fusion.pairs import paired
from burn.plan.passes.fusion.pooled_grads import with_pooled_grads
from burn.plan.passes.fusion.positions import as_rows
from burn.plan.passes.fusion.rows import in_rows
from burn.plan.passes.fusion.scales import with_scales
from burn.plan.passes.fusion.sums import as_matrices
from burn.plan.passes.graph import FLOAT32, Graph, Inputs, Steps
from burn.plan.passes.layout.channels import in_memory_order
from burn.plan.passes.layout.transposed import with_transposed_factors
from burn.plan.passes.places import with_own_places
from burn.plan.passes.slices.slicing import slices_first
from burn.plan.passes.updates import with_updates_last
from burn.plan.plan_ir import Segment, find_drops

Pass: TypeAlias = Callable[[Steps, Graph], Steps]

#: The passes for every device, in execution order.
PASSES: tuple[Pass, ...] = (
    as_products,
    slices_first,
    as_matrices,
    with_transposed_factors,
    constants_first,
    as_rows,
    as_layers,
    with_biases,
    unflattened,
    as_cells,
    without_norms,
    with_scales,
    with_norms_ahead,
    with_pooled_grads,
    merged,
    partial(with_endings, then=THEN_WITH_NORMS),
    in_memory_order,
    without_dead,
)
#: Passes after precision lowering: fusion of the remaining NumPy operations.
LAST: tuple[Pass, ...] = (in_chains, in_rows, paired)


def run_passes(
    root: Segment,
    inputs: Inputs = (),
    passes: tuple[Pass, ...] | None = None,
    dtype: Any = FLOAT32,
) -> Segment:
    """Return a copy of a plan after ``passes``, by default those for every device.

    Passes rewrite the steps of ``dtype`` if they support types other than float32.
    State updates are moved to the end.
    """
    plan = with_own_places(root)
    graph = Graph(plan, inputs, dtype)
    for each in (*PASSES, *LAST) if passes is None else passes:
        before, steps_before = plan, graph.made_steps
        plan = _passed(each, before, graph)
        if graph.made_steps != steps_before or not _has_same_steps(before, plan):
            graph = Graph(plan, inputs, dtype)
    plan = with_updates_last(plan)
    find_drops(plan)
    return plan


def _passed(each: Pass, segment: Segment, graph: Graph) -> Segment:
    # Not a closure that calls itself: its cycle would keep the graph for a while.
    steps = each(list(segment.steps), graph)
    children = {
        value: _passed(each, child, graph) for value, child in segment.children.items()
    }
    return replace(segment, steps=steps, drops=[], children=children)


def _has_same_steps(first: Segment, second: Segment) -> bool:
    """Return whether a pass has left every step in its place."""
    if len(first.steps) != len(second.steps):
        return False
    children = zip(first.children.values(), second.children.values(), strict=True)
    return all(map(is_, first.steps, second.steps)) and all(
        _has_same_steps(*pair) for pair in children
    )
