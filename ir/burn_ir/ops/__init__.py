"""The declarations of all operators, by family. Importing this declares them."""

from burn_ir.ops import (
    bits,
    elementwise,
    functions,
    indexing,
    logic,
    ordering,
    padding,
    scatter,
    shape,
)

__all__ = [
    "bits",
    "elementwise",
    "functions",
    "indexing",
    "logic",
    "ordering",
    "padding",
    "scatter",
    "shape",
]
