"""Code generation: from the module tree to the source of a Python module."""
