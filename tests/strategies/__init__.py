"""Hypothesis strategies for every operator, by family. Importing this declares them."""

from tests.strategies import (
    activation,
    bits,
    conv,
    elementwise,
    functions,
    logic,
    matmul,
    norm,
    pool,
    reduction,
)
from tests.strategies.registry import Example, case, cases, examples

__all__ = [
    "Example",
    "activation",
    "bits",
    "case",
    "cases",
    "conv",
    "norm",
    "pool",
    "elementwise",
    "examples",
    "functions",
    "logic",
    "matmul",
    "reduction",
]
