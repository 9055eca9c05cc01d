"""The declarations of all operators, by family. Importing this declares them."""

from burn_ir.ops import elementwise, shape

__all__ = ["elementwise", "shape"]
