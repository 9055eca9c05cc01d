"""Operators of ONNX that are not declared yet."""

PENDING: tuple[str, ...] = ("ai.onnx.preview.training:Gradient",)
