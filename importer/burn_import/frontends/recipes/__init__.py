"""Recipes: whole models of known architectures, from their weights alone.

A state dict holds names, shapes and numbers, and no program. A recipe writes the graph
of one architecture in terms of the intermediate representation; the weights are used
under the keys that they have, and each of them has to be used.
"""

from burn_import.frontends.recipes.reader import model_of, read

__all__ = ["model_of", "read"]
