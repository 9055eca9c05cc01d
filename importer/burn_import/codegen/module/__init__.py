"""Classes, functions and imports in the order of the file."""
