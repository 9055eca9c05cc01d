"""Skeletons: module classes recovered from weights, without a program.

Names, shapes and dtypes determine the layers of a model, but not its calls. A skeleton
has the model's classes with their layers, loads the weights, and marks in each class
the ``__call__`` that the user must complete.
"""

from burn_import.skeleton.checkpoint import skeleton_of
from burn_import.skeleton.source import skeleton

__all__ = ["skeleton", "skeleton_of"]
