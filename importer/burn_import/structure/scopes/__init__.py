"""Scopes of nodes: from names of weights and modules, and from the dataflow."""
