"""Fusion of matrix products and bias additions into linear layers."""

from burn.ops.elementwise import add
from burn.ops.matmul import linear, matmul
from burn.ops.shape import flatten, reshape, transpose
from burn.plan.passes.graph import Graph, pair_rule, step_rule
from burn.plan.plan_ir import Slot, Step
from burn.structs import replace


@step_rule
def form_linear_layers(step: Step, graph: Graph) -> list[Step] | None:
    """Replace ``x @ w`` with a constant ``w`` by a linear layer."""
    if step.primitive is not matmul or step.dtypes != (graph.dtype,):
        return None
    x, weight = step.args
    shape, dtype = graph.known(weight)
    if (
        shape is None
        or len(shape) != 2
        or dtype != graph.dtype
        or len(step.shapes[0]) < 2
    ):
        return None
    if not graph.is_constant(weight) or graph.is_constant(x):
        return None
    turned = graph.new_step(transpose, (weight, 0, 1), shape[::-1])
    return [turned, replace(step, primitive=linear, args=(x, Slot(turned.outputs[0])))]


@pair_rule
def fuse_biases(step: Step, graph: Graph) -> tuple[Step, list[Step]] | None:
    """Fuse row-wise additions into linear layers as biases."""
    if step.primitive is not add or len(step.args) != 2:
        return None
    for value, other in (step.args, step.args[::-1]):
        layer = graph.only_use(value)
        if layer is None or layer.primitive is not linear or len(layer.args) > 2:
            continue
        form = (step.shapes[0][-1:], graph.dtype)
        if not graph.is_constant(other) or graph.known(other) != form:
            continue
        if layer.shapes == step.shapes and layer.dtypes == step.dtypes:
            args = (*layer.args, other)
            return layer, [replace(step, primitive=linear, args=args)]
    return None


@pair_rule
def unflatten_layers(step: Step, graph: Graph) -> tuple[Step, list[Step]] | None:
    """Apply layers to ``[..., in]`` instead of rows that are unflattened after."""
    if step.primitive not in (reshape, flatten):
        return None
    layer = graph.only_use(step.args[0])
    if layer is None or layer.primitive is not linear:
        return None
    rows = graph.maker.get(layer.args[0].place) if type(layer.args[0]) is Slot else None
    if not isinstance(rows, Step) or rows.primitive not in (reshape, flatten):
        return None
    x = rows.args[0]
    shape, _ = graph.known(x)
    if shape is None or shape[-1] != rows.shapes[0][-1] or len(shape) < 2:
        return None
    if step.shapes[0] != (*shape[:-1], layer.shapes[0][-1]):
        return None
    args = (x, *layer.args[1:])
    return layer, [replace(step, primitive=linear, args=args, static={})]


@pair_rule
def apply_to_any_rank(step: Step, graph: Graph) -> tuple[Step, list[Step]] | None:
    """Apply layers to ``[..., in]`` if the results of rows are reshaped to that."""
    if step.primitive not in (reshape, flatten):
        return None
    layer = graph.only_use(step.args[0])
    if layer is None or layer.primitive is not linear or layer.dtypes != (graph.dtype,):
        return None
    shape, (width,) = step.shapes[0], layer.shapes[0][-1:]
    inputs = (graph.known(layer.args[0])[0] or ())[-1:]
    if len(shape) < 2 or shape[-1:] != (width,) or not inputs:
        return None
    wanted, x = (*shape[:-1], *inputs), layer.args[0]
    maker = graph.maker.get(x.place) if type(x) is Slot else None
    if isinstance(maker, Step) and maker.primitive in (reshape, flatten):
        x = maker.args[0]
    rows: list[Step] = []
    if graph.known(x)[0] != wanted:
        rows = [graph.new_step(reshape, (x, wanted), wanted)]
        x = Slot(rows[0].outputs[0])
    args = (x, *layer.args[1:])
    return layer, [*rows, replace(step, primitive=linear, args=args, static={})]
