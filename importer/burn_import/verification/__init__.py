"""Comparison of modules with other engines."""
