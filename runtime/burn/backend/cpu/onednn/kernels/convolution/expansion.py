"""Expanded depthwise convolutions: a generated kernel, or two of oneDNN."""

from typing import Any

from burn.backend.cpu.blas.expansion import expansion_or_layers
from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.memory import Array
from burn.backend.cpu.onednn.kernels.convolution.convolution import conv, conv_then
from burn.ops.fused import After, expanded_depthwise as expanded_depthwise_op


@expanded_depthwise_op.on(Cpu)
def expanded_depthwise(
    x: Array,
    weight: Array,
    bias: Array | None,
    depth_weight: Array,
    depth_bias: Array | None,
    *,
    after: After,
    depth_after: After,
    stride: Any = 1,
    padding: Any = 0,
) -> Array:
    """Compute :func:`burn.ops.fused.expanded_depthwise` in one pass, if supported."""
    layers = ((weight, bias, after), (depth_weight, depth_bias, depth_after))
    return expansion_or_layers(x, layers, (conv, conv_then), stride, padding)
