"""Simplification of graphs."""

from burn_ir.graph import Graph


def simplify(graph: Graph) -> Graph:
    """``graph``."""
    return graph
