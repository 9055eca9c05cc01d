"""Attention with a generated kernel."""

from typing import Any

from burn.backend.cpu.blas import attention
from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.memory import Array
from burn.ops.fused_attention import scaled_attention as scaled_attention_op


@scaled_attention_op.on(Cpu)
def scaled_attention(*operands: Any, **static: Any) -> Array:
    """Compute attention by one call."""
    return attention.scaled_attention(*operands, **static)
