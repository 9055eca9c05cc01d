"""Hypothesis strategies for every operator, by family. Importing this declares them."""

from tests.strategies import (
    activation,
    bits,
    elementwise,
    functions,
    indexing,
    logic,
    matmul,
    ordering,
    reduction,
    shape,
)
from tests.strategies.registry import Example, case, cases, examples

__all__ = [
    "Example",
    "activation",
    "bits",
    "case",
    "cases",
    "elementwise",
    "examples",
    "functions",
    "indexing",
    "logic",
    "matmul",
    "ordering",
    "reduction",
    "shape",
]
