"""Optimization passes over plans, which preserve the results for finite numbers.

Each pass is in its own file and rewrites the steps of one segment.
"""

from operator import is_
from typing import Any

from burn.plan.passes.constants import hoist_constants
from burn.plan.passes.dead_code import without_dead
from burn.plan.passes.graph import FLOAT32, Graph, Inputs, Pass
from burn.plan.passes.late import late
from burn.plan.passes.unique_slots import with_unique_slots
from burn.plan.passes.updates import sink_updates
from burn.plan.plan_ir import Segment, find_drops
from burn.structs import replace

_LAYERS = "conv conv_then linear linear_then matmul matmul_then"
_NORMS = "batch_norm batch_norm_then group_norm group_norm_then"

as_cells = late("fusion.cells", "as_cells", "sigmoid", "tanh", "split", "linear")
in_chains = late("fusion.chains", "in_chains", "add chained div mul neg relu sqrt sub")
merge_layers = late("fusion.merged_linears", "merge_layers", "linear")

#: The passes for every device, in execution order.
PASSES: tuple[Pass, ...] = (
    late("fusion.contractions", "lower_einsum", "einsum"),
    late(*("slices.slicing", "hoist_slices"), "getitem getitem_grad", "linear matmul"),
    late("fusion.sums", "lower_broadcast_sums", "sum", "mul"),
    late("layout.transposed", "transpose_factors", "matmul", "transpose"),
    hoist_constants,
    late("fusion.single_positions", "lower_full_convolutions", "conv"),
    late("fusion.layers", "form_linear_layers", "matmul"),
    late("fusion.layers", "fuse_biases", "linear", "add"),
    late("fusion.layers", "unflatten_layers", "linear", "flatten reshape"),
    as_cells,
    late("fusion.norms", "fold_norms", "batch_norm", "conv linear"),
    late("fusion.scales", "fold_scales", "conv linear", "add div mul sub"),
    late("fusion.leading_norms", "fold_leading_norms", "batch_norm", "linear"),
    late(
        *("fusion.pooled_grads", "mask_pooled_gradients"), "relu_grad", "window_scatter"
    ),
    merge_layers,
    late("fusion.epilogue_fusion", "fuse_epilogues_of_norms", f"{_LAYERS} {_NORMS}"),
    late(
        *("layout.channels", "permute_flattened_weights"),
        *("linear linear_then", "flatten reshape"),
    ),
    without_dead,
)
#: Passes after precision lowering: fusion of the remaining NumPy operations.
LAST: tuple[Pass, ...] = (
    in_chains,
    late("fusion.rows", "update_selected_rows", "take_grad", "chained"),
    late(
        "fusion.pairs", "fuse_pairs", "conv_weight_grad max_pool", "sum window_argmax"
    ),
)


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
