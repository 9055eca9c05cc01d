"""Folding of channelwise scales and offsets into the weights of a layer.

So are norms that exporters write out, and the scales of residual branches.
"""

from typing import Any

from burn.ops.conv import conv
from burn.ops.elementwise import add, div, mul, sub
from burn.ops.matmul import linear
from burn.ops.shape import reshape
from burn.plan.passes.graph import Graph, pair_rule
from burn.plan.plan_ir import Slot, Step
from burn.primitive import Primitive
from burn.structs import replace
from burn.tensor import Tensor

_FACTORS: tuple[Primitive[..., Any], ...] = (mul, div)
_TERMS: tuple[Primitive[..., Any], ...] = (add, sub)
#: The commutative primitives.
_TURNED: tuple[Primitive[..., Any], ...] = (mul, add)


@pair_rule
def fold_scales(step: Step, graph: Graph) -> tuple[Step, list[Step]] | None:
    """Fold constant channelwise scales and offsets into the layers before them."""
    if step.primitive not in _FACTORS + _TERMS or len(step.args) != 2:
        return None
    pairs = [step.args, step.args[::-1]][: 1 + (step.primitive in _TURNED)]
    for value, other in pairs:
        layer = graph.only_use(value)
        if layer is None or layer.primitive not in (conv, linear):
            continue
        if (layer.shapes, layer.dtypes) != (step.shapes, step.dtypes):
            continue
        if layer.dtypes == (graph.dtype,) and _is_by_channel(other, layer, graph):
            return layer, _scale_layer(step, layer, other, graph)
    return None


def _is_by_channel(other: Any, layer: Step, graph: Graph) -> bool:
    """Return whether ``other`` is one constant per channel, and weights constant."""
    weight, bias = layer.args[1], (*layer.args, None)[2]
    if type(other) not in (Slot, Tensor):
        return False
    if not all(map(graph.is_constant, (weight, bias, other))):
        return False
    forms = [graph.known(value) for value in (weight, other)]
    if any(dtype != graph.dtype for _, dtype in forms):
        return False
    shape = forms[1][0] or ()
    result = layer.shapes[0]
    axis = 1 if layer.primitive is conv else len(result) - 1
    wanted = [1] * len(result)
    wanted[axis] = result[axis]
    return (1,) * (len(result) - len(shape)) + shape == tuple(wanted)


def _scale_layer(step: Step, layer: Step, other: Any, graph: Graph) -> list[Step]:
    """Return the steps that compute the new weights, and the layer with them."""
    new_steps: list[Step] = []

    def new(primitive: Primitive[..., Any], args: Any, shape: tuple[int, ...]) -> Slot:
        new_steps.append(graph.new_step(primitive, args, shape))
        return Slot(new_steps[-1].outputs[0])

    weight, bias = layer.args[1], (*layer.args, None)[2]
    shape = graph.known(weight)[0] or ()
    count = shape[:1]
    if step.primitive in _FACTORS:
        tall = (*count, *(1 for _ in shape[1:]))
        scale = new(reshape, (other, tall), tall)
        weight = new(step.primitive, (weight, scale), shape)
    if step.primitive in _TERMS or bias is not None:
        line = new(reshape, (other, count), count)
        if bias is None and step.primitive is add:
            bias = line
        else:
            start = 0.0 if bias is None else bias
            bias = new(step.primitive, (start, line), count)
    args = (layer.args[0], weight, bias)
    changed = replace(step, primitive=layer.primitive, args=args, static=layer.static)
    return [*new_steps, changed]
