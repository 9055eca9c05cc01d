"""The operators of the domain ai.onnx.ml."""

from burn_ir.ops.ml import encoders, features, linear, scores, svm, trees

__all__ = ["encoders", "features", "linear", "scores", "svm", "trees"]
