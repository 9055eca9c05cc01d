"""The declarations of all operators, by family. Importing this declares them."""

from burn_ir.ops import (
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
    shape,
)

__all__ = [
    "activation",
    "bits",
    "conv",
    "norm",
    "pool",
    "elementwise",
    "functions",
    "logic",
    "matmul",
    "reduction",
    "shape",
]
