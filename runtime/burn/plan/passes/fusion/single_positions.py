"""Lowering of convolutions with a single output position to linear layers."""

from math import prod

from burn.ops.conv import conv
from burn.ops.matmul import linear
from burn.ops.shape import reshape
from burn.plan.passes.graph import FLOAT32, Graph, step_rule
from burn.plan.plan_ir import Slot, Step
from burn.structs import replace


@step_rule
def lower_full_convolutions(step: Step, graph: Graph) -> list[Step] | None:
    """Replace convolutions whose kernel is as large as their input by linear layers."""
    if step.primitive is not conv or step.dtypes != (FLOAT32,):
        return None
    x, weight, bias = (*step.args, None)[:3]
    shape, dtype = graph.known(x)
    kernel, of_weight = graph.known(weight)
    if shape is None or kernel is None or {dtype, of_weight} != {FLOAT32}:
        return None
    if shape[1:] != kernel[1:] or prod(step.shapes[0][2:]) != 1 or _is_padded(step):
        return None
    if not graph.is_constant(weight) or not graph.is_constant(bias):
        return None
    columns = prod(kernel[1:])
    matrix = graph.new_step(
        *(reshape, (weight, (kernel[0], columns)), (kernel[0], columns))
    )
    rows = graph.new_step(reshape, (x, (shape[0], columns)), (shape[0], columns))
    biases = () if bias is None else (bias,)
    args = (Slot(rows.outputs[0]), Slot(matrix.outputs[0]), *biases)
    product = graph.new_step(linear, args, (shape[0], kernel[0]))
    result = (Slot(product.outputs[0]), step.shapes[0])
    return [
        *(matrix, rows, product),
        replace(step, primitive=reshape, args=result, static={}),
    ]


def _is_padded(step: Step) -> bool:
    """Return whether a convolution may read padding."""
    return (
        step.static.get("padding", 0) not in (0, (0,), (0, 0), (0, 0, 0))
        or step.static.get("groups", 1) != 1
    )
