"""Operators of the domain ``com.microsoft``, which ONNX Runtime's tools write."""

from burn_ir.ops.microsoft import blocks, integer, nchwc, quantize

__all__ = ["blocks", "integer", "nchwc", "quantize"]
