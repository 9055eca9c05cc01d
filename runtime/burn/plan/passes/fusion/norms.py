"""Folding of batch normalization into the layer before it."""

from typing import Any

from burn.ops.conv import conv
from burn.ops.fused import scaled_weight, shifted_bias
from burn.ops.matmul import linear
from burn.ops.norm import batch_norm
from burn.plan.passes.graph import Graph, pair_rule
from burn.plan.plan_ir import Slot, Step
from burn.primitive import Primitive
from burn.structs import replace

#: Layers with their output channels in the first axis of the weights.
_LAYERS: tuple[Primitive[..., Any], ...] = (conv, linear)


def _has_same_channels(layer: Step) -> bool:
    """Return whether a layer has its outputs along axis 1, like the norm.

    A linear layer has them along its last axis, for any rank.
    """
    return layer.primitive is conv or len(layer.shapes[0]) == 2


@pair_rule
def fold_norms(step: Step, graph: Graph) -> tuple[Step, list[Step]] | None:
    """Fold norms by stored statistics into the convolution or linear layer before."""
    if step.primitive is not batch_norm or step.dtypes != (graph.dtype,):
        return None
    layer = graph.only_use(step.args[0])
    if (
        layer is None
        or layer.primitive not in _LAYERS
        or layer.dtypes != (graph.dtype,)
    ):
        return None
    if not _has_same_channels(layer):
        return None
    weight, bias = layer.args[1], (*layer.args, None)[2]
    mean, var, scale, shift = (*step.args[1:], None, None)[:4]
    constants = (weight, bias, mean, var, scale, shift)
    shape, dtype = graph.known(weight)
    if (
        shape is None
        or dtype != graph.dtype
        or not all(map(graph.is_constant, constants))
    ):
        return None
    epsilon = step.static.get("epsilon", 1e-5)
    weights = graph.new_step(
        scaled_weight, (weight, var, scale), shape, epsilon=epsilon
    )
    biases = graph.new_step(
        *(shifted_bias, (bias, mean, var, scale, shift), shape[:1]), epsilon=epsilon
    )
    args = (layer.args[0], Slot(weights.outputs[0]), Slot(biases.outputs[0]))
    changed = replace(step, primitive=layer.primitive, args=args, static=layer.static)
    return layer, [weights, biases, changed]
