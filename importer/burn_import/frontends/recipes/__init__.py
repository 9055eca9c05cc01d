"""Recipes: whole models of known architectures, from their weights alone.

A state dict holds names, shapes and numbers, and no program. A recipe writes the graph
of one architecture in the intermediate representation. Weights keep their keys, and
every weight of the file must be used.
"""

from burn_import.frontends.recipes.reader import model_of, read

__all__ = ["model_of", "read"]
