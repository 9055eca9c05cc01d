"""Hypothesis strategies for every operator, by family. Importing this declares them."""

from tests.strategies import (
    activation,
    bits,
    cast,
    conv,
    creation,
    elementwise,
    functions,
    indexing,
    logic,
    matmul,
    norm,
    ordering,
    pool,
    reduction,
    rnn,
    shape,
)
from tests.strategies.registry import Example, case, cases, examples

__all__ = [
    "Example",
    "activation",
    "bits",
    "case",
    "cases",
    "cast",
    "conv",
    "creation",
    "elementwise",
    "examples",
    "functions",
    "indexing",
    "logic",
    "matmul",
    "norm",
    "ordering",
    "pool",
    "reduction",
    "rnn",
    "shape",
]
