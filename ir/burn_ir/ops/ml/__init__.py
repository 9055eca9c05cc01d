"""The operators of the domain ai.onnx.ml."""

from burn_ir.ops.ml import encoders, features, linear, maps, scores, svm, trees

__all__ = ["encoders", "features", "linear", "maps", "scores", "svm", "trees"]
