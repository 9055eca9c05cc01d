"""Recovering the module tree that a flat graph was exported from."""

from burn_import.structure.flat import flattened
from burn_import.structure.module_tree import Call, Item, Part, Tree
from burn_import.structure.recover import recover

__all__ = ["Call", "Item", "Part", "Tree", "flattened", "recover"]
