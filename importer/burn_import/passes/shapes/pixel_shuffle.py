"""Recovers pixel shuffle from two reshapes and a permutation."""

from dataclasses import replace

from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope, with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.indexing import DepthToSpace

#: Permutations of axes [N, C, r, r, H, W] or [N, r, r, C, H, W].
_ORDERS = {(0, 1, 4, 2, 5, 3): ("CRD", 1), (0, 3, 4, 1, 5, 2): ("DCR", 3)}


def pixel_shuffle(graph: Graph) -> Graph:
    """Return ``graph`` with ``DepthToSpace`` for its decomposition.

    The decomposition is a reshape that splits the channels, a permutation, and a
    reshape that joins block rows with rows and block columns with columns.
    """
    if "Transpose" not in graph.operators:
        return graph
    flow = Dataflow(graph)
    nodes = []
    for node in graph.nodes:
        parts = _parts(node, flow)
        new = None if parts is None else _depth_to_space(*parts, node, flow)
        nodes.append(node if new is None else new)
    return with_nodes(graph, nodes)


def _parts(node: Node, flow: Dataflow) -> tuple[Node, Node] | None:
    """Return the reshape and permutation before a reshape, if it alone reads them."""
    if flow.made_by(node.outputs[0], "Reshape") is not node:
        return None
    moved = flow.made_by(node.inputs[0], "Transpose")
    split = None if moved is None else flow.made_by(moved.inputs[0], "Reshape")
    if moved is None or split is None:
        return None
    return (split, moved) if flow.are_inside((split, moved), node) else None


def _depth_to_space(
    split: Node, moved: Node, node: Node, flow: Dataflow
) -> Node | None:
    order = _ORDERS.get(moved.op.attrs()["perm"])
    x, divided = flow.extents(split.inputs[0]), flow.extents(split.output)
    if order is None or len(x) != 4 or len(divided) != 6:
        return None
    mode, axis = order
    n, *blocks, height, width = divided
    channels = blocks.pop(axis - 1)
    size = blocks[0]
    if size != blocks[1] or not isinstance(size, int) or size < 1:
        return None
    whole = (n, channels * size * size, height, width)
    result = (n, channels, height * size, width * size)
    if x != whole or flow.extents(node.output) != result:
        return None
    scope, classes = common_scope(split, moved, node)
    op = DepthToSpace(blocksize=size, mode="CRD" if mode == "CRD" else "DCR")
    return replace(node, op=op, inputs=split.inputs[:1], scope=scope, classes=classes)
