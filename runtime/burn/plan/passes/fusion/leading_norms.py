"""Folding of batch normalization into the layer after it."""

from burn.ops.fused import scaled_columns, shifted_by_columns
from burn.ops.matmul import linear
from burn.ops.norm import batch_norm
from burn.plan.passes.graph import FLOAT32, Graph, step_rule
from burn.plan.passes.layout.channels import flattened_image
from burn.plan.plan_ir import Slot, Step
from burn.structs import replace


@step_rule
def fold_leading_norms(step: Step, graph: Graph) -> list[Step] | None:
    """Fold norms into the weights of the layers of flattened images after them."""
    rows = flattened_image(step, graph) if step.primitive is linear else None
    norm = None if rows is None else graph.only_use(rows.args[0])
    if rows is None or norm is None or norm.primitive is not batch_norm:
        return None
    constants = (*norm.args[1:], None, None)[:4]
    weight, bias = step.args[1], (*step.args, None)[2]
    if not all(map(graph.is_constant, (*constants, bias))) or norm.dtypes != (FLOAT32,):
        return None
    epsilon = norm.static.get("epsilon", 1e-5)
    shape, _ = graph.known(weight)
    if shape is None:
        return None
    columns = graph.new_step(
        *(scaled_columns, (weight, constants[1], constants[2]), shape), epsilon=epsilon
    )
    shift = graph.new_step(
        *(shifted_by_columns, (bias, weight, *constants), shape[:1]), epsilon=epsilon
    )
    flat = graph.new_step(
        rows.primitive, (norm.args[0], *rows.args[1:]), rows.shapes[0]
    )
    flat = replace(flat, static=rows.static)
    args = (Slot(flat.outputs[0]), Slot(columns.outputs[0]), Slot(shift.outputs[0]))
    return [columns, shift, flat, replace(step, args=args)]
