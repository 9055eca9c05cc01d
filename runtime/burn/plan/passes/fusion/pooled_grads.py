"""Gradients of ReLU before max pooling, computed on the smaller pooled images."""

from burn.ops.activation import relu_grad
from burn.ops.pool import window_argmax, window_scatter
from burn.plan.passes.graph import Graph, pair_rule
from burn.plan.plan_ir import Slot, Step
from burn.structs import replace


@pair_rule
def mask_pooled_gradients(step: Step, graph: Graph) -> tuple[Step, list[Step]] | None:
    """Mask the gradients of max pooling before they are scattered, not after.

    An element whose gradient the pooling returns is the maximum of its windows, so
    that ``relu_grad`` by the pooled values has the same bits.
    """
    if step.primitive is not relu_grad:
        return None
    scatter, image = graph.only_use(step.args[0]), step.args[1]
    if scatter is None or scatter.primitive is not window_scatter:
        return None
    grad, choice = scatter.args
    taps = graph.maker.get(choice.place) if type(choice) is Slot else None
    if not isinstance(taps, Step) or taps.primitive is not window_argmax:
        return None
    x, pooled = taps.args
    if x != image or step.dtypes != (graph.dtype,) or scatter.dtypes != step.dtypes:
        return None
    masked = graph.new_step(relu_grad, (grad, pooled), taps.shapes[0])
    outer = replace(scatter, args=(Slot(masked.outputs[0]), choice))
    return scatter, [masked, replace(outer, outputs=step.outputs)]
