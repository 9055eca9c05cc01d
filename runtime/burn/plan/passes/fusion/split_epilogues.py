"""Splitting of activations from the layers before them.

It is for devices whose layers have no activation: generated loops compute it.
"""

from typing import Any

from burn.ops.activation import gelu
from burn.ops.conv import conv
from burn.ops.fused import conv_then, linear_then
from burn.ops.matmul import linear
from burn.plan.passes.fusion.epilogue_fusion import PLAIN
from burn.plan.passes.graph import FLOAT32, Graph, step_rule
from burn.plan.plan_ir import Slot, Step
from burn.structs import replace

_LAYERS: dict[Any, Any] = {conv_then: conv, linear_then: linear}
#: The primitives of activations, with their options. Layers compute ReLU themselves.
_ACTIVATIONS: dict[Any, tuple[Any, dict[str, Any]]] = {
    **{(name,): (op, {}) for op, name in PLAIN.items() if name != "relu"},
    ("gelu",): (gelu, {}),
    ("gelu_tanh",): (gelu, {"approximate": "tanh"}),
}


@step_rule
def split_epilogue(step: Step, graph: Graph) -> list[Step] | None:
    """Replace each layer that ends with an activation by two steps."""
    *before, last = step.static.get("after") or ((),)
    if step.primitive not in _LAYERS or last not in _ACTIVATIONS:
        return None
    if step.dtypes != (FLOAT32,):
        return None
    primitive, options = _ACTIVATIONS[last]
    static = {name: value for name, value in step.static.items() if name != "after"}
    layer: Any = _LAYERS[step.primitive]
    args = step.args[:3]
    if before:
        layer, args = step.primitive, step.args
        static["after"] = tuple(before)
    first = graph.new_step(layer, args, step.shapes[0], **static)
    operands = (Slot(first.outputs[0]),)
    return [first, replace(step, primitive=primitive, args=operands, static=options)]
