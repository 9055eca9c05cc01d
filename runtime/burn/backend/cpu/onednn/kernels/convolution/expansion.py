"""Expanded depthwise convolutions: a generated kernel, or two of oneDNN."""

from typing import Any

from burn.backend.cpu.blas.expansion import expansion_or_layers
from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.memory import Array
from burn.backend.cpu.onednn.kernels.convolution.convolution import conv, conv_then
from burn.ops.fused import expanded_depthwise as expanded_depthwise_op


@expanded_depthwise_op.on(Cpu)
def expanded_depthwise(*operands: Any, **static: Any) -> Array:
    """Compute :func:`burn.ops.fused.expanded_depthwise` in one pass, if supported."""
    return expansion_or_layers(conv, conv_then, *operands, **static)
