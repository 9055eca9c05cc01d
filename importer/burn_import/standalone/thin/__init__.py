"""Replacements for parts of the runtime in standalone modules.

The sources here are read as text, like those of the runtime, and not imported.
"""
