"""Operators of the domain ``com.microsoft``, which ONNX Runtime's tools write."""

from burn_ir.ops.microsoft import activation, attention, fused, norm, query, tensors

__all__ = ["activation", "attention", "fused", "norm", "query", "tensors"]
