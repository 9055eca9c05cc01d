"""Splits into equal sizes are given by their number instead of their sizes."""

from dataclasses import replace

from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.split import Split


def equal_splits(graph: Graph) -> Graph:
    """Return ``graph`` with splits such as ``(32, 32, 32)`` as three equal parts.

    The extent must be known: of another, both have other parts.
    """
    if "Split" not in graph.operators:
        return graph
    flow = Dataflow(graph)
    return with_nodes(graph, [_by_count(flow, node) for node in graph.nodes])


def _by_count(flow: Dataflow, node: Node) -> Node:
    """Return ``node`` without its sizes if it is a split into equal ones."""
    if not isinstance(node.op, Split) or len(node.inputs) < 2 or not node.inputs[1]:
        return node
    sizes, shape = flow.stored(node.inputs[1]), flow.extents(node.inputs[0])
    if sizes is None or len(sizes) < 2 or not sizes.all() or len(set(sizes)) > 1:
        return node
    if not shape or shape[node.op.axis] != int(sizes.sum()):
        return node
    op = replace(node.op, num_outputs=len(sizes))
    return replace(node, op=op, inputs=node.inputs[:1])
