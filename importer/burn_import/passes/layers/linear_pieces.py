"""Recovers linear functions whose weights are pieces of a stored matrix."""

from dataclasses import replace

from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope
from burn_ir.graph import Graph, Node
from burn_ir.ops.fused import Linear


def may_have_pieces(graph: Graph) -> bool:
    """Return whether ``graph`` may have a product with a piece of a stored matrix."""
    has_pieces = not graph.operators.isdisjoint({"Split", "Slice"})
    return has_pieces and {"MatMul", "Transpose", "Add"} <= graph.operators


def linear_of_pieces(node: Node, flow: Dataflow) -> Node:
    """Return ``Linear`` for an ``Add`` in ``x @ piece.T + bias``, else ``node``.

    PyTorch's attention splits the weight of queries from that of keys and values where
    these are computed from another array. Both operands are pieces of stored arrays.
    """
    for name, bias in (node.inputs, node.inputs[::-1]):
        product = flow.made_by(name, "MatMul")
        if product is None or flow.graph.uses[product.output] != 1:
            continue
        x, matrix = product.inputs
        weight = _transpose_operand(matrix, flow)
        rows = flow.extents(weight)[:1]
        has_shapes = rows and flow.extents(bias) == rows and len(flow.extents(x)) > 1
        if has_shapes and _is_piece(weight, flow) and _is_piece(bias, flow):
            scope, classes = common_scope(product, node)
            inputs = (x, weight, bias)
            return replace(
                node, op=Linear(), inputs=inputs, scope=scope, classes=classes
            )
    return node


def _transpose_operand(name: str | None, flow: Dataflow) -> str | None:
    """Return the matrix that ``name`` is the transpose of, None if it is none."""
    transpose = flow.made_by(name, "Transpose")
    if transpose is None or len(flow.extents(name)) != 2:
        return None
    order = transpose.op.attrs()["perm"]
    return transpose.inputs[0] if order is None or [*order] == [1, 0] else None


def _is_piece(name: str | None, flow: Dataflow) -> bool:
    """Return whether an array is a piece of a stored array."""
    node = flow.producers.get(name or "")
    if node is None or node.op.domain or node.op.onnx not in ("Split", "Slice"):
        return False
    return flow.stored(node.inputs[0]) is not None
