"""The declarations of all operators, by family. Importing this declares them."""

from burn_ir.ops import (
    activation,
    bits,
    elementwise,
    functions,
    logic,
    matmul,
    reduction,
    shape,
)

__all__ = [
    "activation",
    "bits",
    "elementwise",
    "functions",
    "logic",
    "matmul",
    "reduction",
    "shape",
]
