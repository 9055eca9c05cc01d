"""Modules of a graph without names of modules: its blocks.

If neither weights nor nodes name modules, branches and repetition are the only signs of
a module boundary.
"""

from burn_import.structure.blocks.assignment import with_blocks

__all__ = ["with_blocks"]
