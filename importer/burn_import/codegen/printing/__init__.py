"""Emission of traced statements as lines of Python."""
