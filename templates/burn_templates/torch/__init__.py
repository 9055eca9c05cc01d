"""Functions and modules that generated PyTorch modules copy, read as text.

Each top-level definition here is a helper; the importer does not import these files.
"""
