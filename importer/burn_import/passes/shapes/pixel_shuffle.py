"""Recovers pixel shuffle from the reshapes and the permutation that it is made of."""

from __future__ import annotations

from dataclasses import replace

from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import changed, common_scope
from burn_ir.graph import Graph, Node
from burn_ir.ops.indexing import DepthToSpace

#: The order in which the axes of [N, C, r, r, H, W] or [N, r, r, C, H, W] are put.
_ORDERS = {(0, 1, 4, 2, 5, 3): ("CRD", 1), (0, 3, 4, 1, 5, 2): ("DCR", 3)}


def pixel_shuffle(graph: Graph) -> Graph:
    """``graph`` with ``DepthToSpace`` where channels are moved into blocks of space.

    That is a reshape which divides the channels, a permutation, and a reshape which
    joins rows with those of a block, and columns.
    """
    if "Transpose" not in graph.operators:
        return graph
    flow = Dataflow(graph)
    nodes, absorbed = [], set[int]()
    for node in graph.nodes:
        parts = _parts(node, flow)
        new = None if parts is None else _shuffled(*parts, node, flow)
        nodes.append(node if new is None else new)
        if new is not None and parts is not None:
            absorbed |= {id(part) for part in parts}
    return changed(graph, [node for node in nodes if id(node) not in absorbed])


def _parts(node: Node, flow: Dataflow) -> tuple[Node, Node] | None:
    """The reshape and the permutation before a reshape that nobody else reads."""
    if flow.made_by(node.outputs[0], "Reshape") is not node:
        return None
    moved = flow.made_by(node.inputs[0], "Transpose")
    split = None if moved is None else flow.made_by(moved.inputs[0], "Reshape")
    if moved is None or split is None:
        return None
    return (split, moved) if flow.are_inside((split, moved), node) else None


def _shuffled(split: Node, moved: Node, node: Node, flow: Dataflow) -> Node | None:
    order = _ORDERS.get(moved.op.attrs()["perm"])
    x, divided = flow.extents(split.inputs[0]), flow.extents(split.output)
    if order is None or len(x) != 4 or len(divided) != 6:
        return None
    mode, place = order
    n, *blocks, height, width = divided
    channels = blocks.pop(place - 1)
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
