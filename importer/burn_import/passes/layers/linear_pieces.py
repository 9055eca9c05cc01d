"""Recovers linear functions whose weights are pieces of a stored matrix."""

from __future__ import annotations

from dataclasses import replace

from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope, with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.fused import Linear


def linear_pieces(graph: Graph) -> Graph:
    """Return ``graph`` with ``Linear`` for ``x @ piece.T + bias``.

    PyTorch's attention splits the weight of queries from that of keys and values where
    these are computed from another array. Both operands are pieces of stored arrays.
    Results may differ by rounding.
    """
    if not {"MatMul", "Transpose", "Add"} <= graph.operators:
        return graph
    flow = Dataflow(graph)
    return with_nodes(graph, [_rewrite(node, flow) for node in graph.nodes])


def _rewrite(node: Node, flow: Dataflow) -> Node:
    """Return ``node``, or the linear function that computes the same."""
    is_add = node.op.onnx == "Add" and not node.op.domain
    for name, bias in (node.inputs, node.inputs[::-1]) if is_add else ():
        product = flow.made_by(name, "MatMul")
        if product is None or flow.graph.uses[product.output] != 1:
            continue
        weight = _turned(product.inputs[1], flow)
        rows = flow.extents(weight)[:1]
        if not rows or flow.extents(bias) != rows:
            continue
        is_matrix = len(flow.extents(product.inputs[0])) > 1
        if (
            is_matrix
            and _is_stored_piece(weight, flow)
            and _is_stored_piece(bias, flow)
        ):
            scope, classes = common_scope(product, node)
            inputs = (product.inputs[0], weight, bias)
            op = Linear()
            return replace(node, op=op, inputs=inputs, scope=scope, classes=classes)
    return node


def _turned(name: str | None, flow: Dataflow) -> str | None:
    """Return the matrix that ``name`` is the transpose of, if it is one."""
    turned = flow.made_by(name, "Transpose")
    if turned is None or len(flow.extents(name)) != 2:
        return None
    order = turned.op.attrs()["perm"]
    return turned.inputs[0] if order is None or [*order] == [1, 0] else None


def _is_stored_piece(name: str | None, flow: Dataflow) -> bool:
    """Return whether an array is a piece of a stored array."""
    node = flow.producers.get(name or "")
    if node is None or node.op.domain or node.op.onnx not in ("Split", "Slice"):
        return False
    return flow.stored(node.inputs[0]) is not None
