"""The declarations of all operators, by family. Importing this declares them."""

from burn_ir.ops import elementwise

__all__ = ["elementwise"]
