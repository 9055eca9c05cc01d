"""Tracing of functions: nodes and module calls become statements."""
