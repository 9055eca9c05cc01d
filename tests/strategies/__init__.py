"""Hypothesis strategies for every operator, by family. Importing this declares them."""

from tests.strategies import elementwise
from tests.strategies.registry import Example, case, cases, examples

__all__ = ["Example", "case", "cases", "elementwise", "examples"]
