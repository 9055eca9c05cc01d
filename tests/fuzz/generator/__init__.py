"""Random valid ONNX graphs, built one trial execution at a time."""

from tests.fuzz.generator.case import PROFILES, FuzzCase, generate

__all__ = ["PROFILES", "FuzzCase", "generate"]
