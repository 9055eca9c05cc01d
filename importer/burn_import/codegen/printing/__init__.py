"""Traced statements as lines of Python."""
