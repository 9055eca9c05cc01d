"""Recovery of the module tree that a flat graph was exported from."""

from burn_import.structure.flat import flatten
from burn_import.structure.module_tree import (
    Instruction,
    ModuleNode,
    SubmoduleCall,
    Tree,
)
from burn_import.structure.recover import recover

__all__ = ["Instruction", "ModuleNode", "SubmoduleCall", "Tree", "flatten", "recover"]
