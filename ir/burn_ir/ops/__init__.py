"""The declarations of all operators, by family. Importing this declares them."""

from burn_ir.ops import bits, elementwise, functions, logic, shape

__all__ = ["bits", "elementwise", "functions", "logic", "shape"]
