"""The declarations of all operators, by family. Importing this declares them."""

from burn_ir.ops import (
    activation,
    bits,
    elementwise,
    functions,
    indexing,
    logic,
    matmul,
    options,
    ordering,
    padding,
    reduction,
    scatter,
    shape,
)

__all__ = [
    "activation",
    "bits",
    "elementwise",
    "functions",
    "indexing",
    "logic",
    "matmul",
    "options",
    "ordering",
    "padding",
    "reduction",
    "scatter",
    "shape",
]
