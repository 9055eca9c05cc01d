"""Random valid ONNX graphs, built one trial execution at a time."""

from tests.fuzz.generator.case import FuzzCase, generate

__all__ = ["FuzzCase", "generate"]
