"""Drawings of module trees: boxes of modules and the data flow between them."""
