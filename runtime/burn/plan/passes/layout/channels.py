"""Layout of flattened images: weights are permuted instead of activations."""

from math import prod

from burn.ops.conv import conv
from burn.ops.fused import conv_then, linear_then
from burn.ops.matmul import linear
from burn.ops.norm import batch_norm
from burn.ops.pool import avg_pool, max_pool
from burn.ops.shape import flatten, permute, reshape
from burn.plan.passes.graph import FLOAT32, Graph, step_rule
from burn.plan.plan_ir import Slot, Step
from burn.structs import replace

#: Primitives whose results are computed with channels last.
_CHANNELS_LAST = frozenset({conv, conv_then, batch_norm, avg_pool, max_pool})
_VIEWS = frozenset({flatten, reshape})


def flattened_image(step: Step, graph: Graph) -> Step | None:
    """Return the step that flattens images [N, C, *size] for a layer, or None."""
    layers = (linear, linear_then)
    rows = graph.only_use(step.args[0]) if step.primitive in layers else None
    if rows is None or rows.primitive not in _VIEWS or rows.dtypes != (FLOAT32,):
        return None
    shape, _ = graph.known(rows.args[0])
    if shape is None or len(shape) < 3 or rows.shapes[0] != (shape[0], prod(shape[1:])):
        return None
    weight = step.args[1]
    if graph.known(weight)[1] != FLOAT32 or not graph.is_constant(weight):
        return None
    return rows


@step_rule
def permute_flattened_weights(step: Step, graph: Graph) -> list[Step] | None:
    """Let layers of flattened images read them with channels last."""
    rows = flattened_image(step, graph)
    image = graph.maker.get(rows.args[0].place) if rows is not None else None
    if rows is None or not isinstance(image, Step):
        return None
    if image.primitive not in _CHANNELS_LAST or len(image.shapes) != 1:
        return None
    (shape,) = image.shapes
    axes = (0, *range(2, len(shape)), 1)
    last = tuple(shape[axis] for axis in axes)
    outputs = step.shapes[0][-1]
    weight = graph.new_step(
        reshape, (step.args[1], (outputs, *shape[1:])), (outputs, *shape[1:])
    )
    turned = graph.new_step(
        *(permute, (Slot(weight.outputs[0]), axes), (outputs, *last[1:]))
    )
    columns = (outputs, prod(last[1:]))
    weights = graph.new_step(reshape, (Slot(turned.outputs[0]), columns), columns)
    images = graph.new_step(permute, (rows.args[0], axes), last)
    flat = graph.new_step(
        reshape, (Slot(images.outputs[0]), rows.shapes[0]), rows.shapes[0]
    )
    args = (Slot(flat.outputs[0]), Slot(weights.outputs[0]), *step.args[2:])
    return [weight, turned, weights, images, flat, replace(step, args=args)]
