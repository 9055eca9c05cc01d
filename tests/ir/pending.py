"""Operators of ONNX that are not declared yet."""

PENDING: tuple[str, ...] = ()
