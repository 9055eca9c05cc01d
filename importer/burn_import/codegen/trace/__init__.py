"""Traces of functions: nodes and module calls as statements."""
