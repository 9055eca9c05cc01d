"""Attention with a generated kernel."""

from burn.backend.cpu.blas.attention import scaled_attention
from burn.backend.cpu.device import Cpu
from burn.ops.fused_attention import scaled_attention as scaled_attention_op

scaled_attention_op.on(Cpu)(scaled_attention)
