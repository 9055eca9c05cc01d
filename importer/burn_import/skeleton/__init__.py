"""Skeletons: the modules that weights are of, without the program that uses them.

Names, shapes and dtypes tell what a model is made of, and not how it is called. A
skeleton has its classes with their layers, loads the weights, and says in each class
what is left to write.
"""

from burn_import.skeleton.checkpoint import skeleton_of
from burn_import.skeleton.source import skeleton

__all__ = ["skeleton", "skeleton_of"]
