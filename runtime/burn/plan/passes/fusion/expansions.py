"""Fusion of pointwise convolutions with the depthwise ones that read them.

Inverted residual blocks (MobileNet, EfficientNet) expand an image to several times its
channels. A device that computes both convolutions line by line need not write the
expanded image to memory.
"""

from math import prod
from typing import Any

from burn.ops.conv import conv
from burn.ops.fused import conv_then, expanded_depthwise
from burn.ops.window import pads_of, per_axis
from burn.plan.passes.graph import FLOAT32, Graph, pair_rule
from burn.plan.plan_ir import Step
from burn.structs import replace

_CONVOLUTIONS = (conv, conv_then)
#: The activations that may follow each of the convolutions.
_ACTIVATIONS = frozenset({"clip", "hard_sigmoid", "hard_swish", "relu", "silu"})
#: The elements of the smallest expanded image, and the most channels of the image that
#: is expanded: with more the time is that of the products.
LEAST, MOST = 1 << 16, 48


@pair_rule
def join_expansions(step: Step, graph: Graph) -> tuple[Step, list[Step]] | None:
    """Replace a pointwise convolution and the depthwise one behind it by one step."""
    if not _is_convolution(step, graph) or not _is_depthwise(step, graph):
        return None
    before = graph.only_use(step.args[0])
    if before is None or not _is_convolution(before, graph):
        return None
    if not _is_pointwise(before, graph):
        return None
    static = {
        "after": before.static.get("after", ()),
        "depth_after": step.static.get("after", ()),
        "stride": step.static.get("stride", 1),
        "padding": step.static.get("padding", 0),
    }
    weights = (*before.args[1:3], None)[:2], (*step.args[1:3], None)[:2]
    args = (before.args[0], *weights[0], *weights[1])
    fused = replace(step, primitive=expanded_depthwise, args=args, static=static)
    return before, [fused]


def _is_convolution(step: Step, graph: Graph) -> bool:
    """Return whether a convolution of constants ends with an activation or nothing."""
    if step.primitive not in _CONVOLUTIONS or step.dtypes != (FLOAT32,):
        return False
    after = step.static.get("after", ())
    if len(after) > 1 or any(name not in _ACTIVATIONS for name, *_ in after):
        return False
    operands = step.args[1:3]
    return all(map(graph.is_constant, operands)) and {
        graph.known(each)[1] for each in (step.args[0], *operands) if each is not None
    } == {FLOAT32}


def _is_pointwise(step: Step, graph: Graph) -> bool:
    """Return whether a convolution of few channels has windows of one pixel."""
    kernel = graph.known(step.args[1])[0]
    if kernel is None or kernel[2:] != (1, 1) or kernel[1] > MOST:
        return False
    plain = {"stride": {1}, "padding": {0}, "groups": {1}}
    return prod(step.shapes[0]) >= LEAST and all(
        set(_numbers(step.static.get(name, min(one)))) == one
        for name, one in plain.items()
    )


def _is_depthwise(step: Step, graph: Graph) -> bool:
    """Return whether a convolution has a square window in each channel by itself."""
    kernel, static = graph.known(step.args[1])[0], step.static
    channels = step.shapes[0][1]
    if kernel is None or kernel[:2] != (channels, 1) or len(kernel) != 4:
        return False
    if static.get("groups", 1) != channels or kernel[2] != kernel[3] or kernel[2] < 2:
        return False
    padding = static.get("padding", 0)
    if isinstance(padding, str) or set(_numbers(static.get("dilation", 1))) != {1}:
        return False
    if len(set(per_axis(static.get("stride", 1), 2))) != 1 or not all(step.shapes[0]):
        return False
    return all(min(pads) >= 0 for pads in pads_of(padding, 2))


def _numbers(value: Any) -> list[Any]:
    """Return the numbers of a static argument, which may be nested."""
    if not isinstance(value, tuple | list):
        return [value]
    return [number for part in value for number in _numbers(part)]
