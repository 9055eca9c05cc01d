"""Optimization passes over plans, which preserve the results for finite numbers.

Each pass is in its own file and rewrites the steps of one segment.
"""

from functools import partial
from operator import is_
from typing import Any

from burn.plan.passes.constants import hoist_constants
from burn.plan.passes.dead_code import without_dead
from burn.plan.passes.fusion.cells import as_cells
from burn.plan.passes.fusion.chains import in_chains
from burn.plan.passes.fusion.contractions import lower_einsum
from burn.plan.passes.fusion.epilogue_fusion import THEN_WITH_NORMS, fuse_epilogues
from burn.plan.passes.fusion.layers import (
    form_linear_layers,
    fuse_biases,
    unflatten_layers,
)
from burn.plan.passes.fusion.leading_norms import fold_leading_norms
from burn.plan.passes.fusion.merged_linears import merge_layers
from burn.plan.passes.fusion.norms import fold_norms
from burn.plan.passes.fusion.pairs import fuse_pairs
from burn.plan.passes.fusion.pooled_grads import mask_pooled_gradients
from burn.plan.passes.fusion.rows import update_selected_rows
from burn.plan.passes.fusion.scales import fold_scales
from burn.plan.passes.fusion.single_positions import lower_full_convolutions
from burn.plan.passes.fusion.sums import lower_broadcast_sums
from burn.plan.passes.graph import FLOAT32, Graph, Inputs, Pass
from burn.plan.passes.layout.channels import permute_flattened_weights
from burn.plan.passes.layout.transposed import transpose_factors
from burn.plan.passes.slices.slicing import hoist_slices
from burn.plan.passes.unique_slots import with_unique_slots
from burn.plan.passes.updates import sink_updates
from burn.plan.plan_ir import Segment, find_drops
from burn.structs import replace

#: The passes for every device, in execution order.
PASSES: tuple[Pass, ...] = (
    lower_einsum,
    hoist_slices,
    lower_broadcast_sums,
    transpose_factors,
    hoist_constants,
    lower_full_convolutions,
    form_linear_layers,
    fuse_biases,
    unflatten_layers,
    as_cells,
    fold_norms,
    fold_scales,
    fold_leading_norms,
    mask_pooled_gradients,
    merge_layers,
    partial(fuse_epilogues, then=THEN_WITH_NORMS),
    permute_flattened_weights,
    without_dead,
)
#: Passes after precision lowering: fusion of the remaining NumPy operations.
LAST: tuple[Pass, ...] = (in_chains, update_selected_rows, fuse_pairs)


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
    plan = with_unique_slots(root)
    graph = Graph(plan, inputs, dtype)
    for each in (*PASSES, *LAST) if passes is None else passes:
        before, steps_before = plan, graph.new_steps
        plan = _run_pass(each, before, graph)
        if graph.new_steps != steps_before or not _has_same_steps(before, plan):
            graph = Graph(plan, inputs, dtype)
    plan = sink_updates(plan)
    find_drops(plan)
    return plan


def _run_pass(each: Pass, segment: Segment, graph: Graph) -> Segment:
    # Not a recursive closure, whose reference cycle would keep the graph alive.
    steps = each(list(segment.steps), graph)
    children = {
        value: _run_pass(each, child, graph)
        for value, child in segment.children.items()
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
