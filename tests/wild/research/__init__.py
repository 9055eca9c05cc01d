"""Small programs of research fields, each a model with inputs of two sizes.

A module has ``PROGRAMS``: functions by name that return a model, its inputs, and
inputs of another size or None.
"""
