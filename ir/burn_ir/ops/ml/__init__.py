"""The operators of the domain ai.onnx.ml."""

from burn_ir.ops.ml import scores, trees

__all__ = ["scores", "trees"]
