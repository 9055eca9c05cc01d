"""The declarations of all operators, by family. Importing this declares them."""

from burn_ir.ops import (
    activation,
    bits,
    conv,
    elementwise,
    functions,
    indexing,
    logic,
    matmul,
    options,
    ordering,
    padding,
    pool,
    reduction,
    scatter,
    shape,
    window,
)

__all__ = [
    "activation",
    "bits",
    "conv",
    "elementwise",
    "functions",
    "indexing",
    "logic",
    "matmul",
    "options",
    "ordering",
    "padding",
    "pool",
    "reduction",
    "scatter",
    "shape",
    "window",
]
