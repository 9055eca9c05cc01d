"""Expands onnxruntime's ``FusedMatMul`` to transposes, a product and a scale."""

from dataclasses import replace

from burn_import.rewriting.arrays import number
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.elementwise import Mul
from burn_ir.ops.matmul import MatMul
from burn_ir.ops.microsoft.fused import FusedMatMul
from burn_ir.ops.shape import Transpose


def expand_fused_matmul(graph: Graph) -> Graph:
    """Return ``graph`` with ``MatMul`` for ``FusedMatMul``, for later passes.

    Nodes that transpose batch axes or have operands of unknown rank stay.
    """
    if FusedMatMul.onnx not in graph.operators:
        return graph
    flow = Dataflow(graph)
    return with_nodes(
        graph, [new for node in graph.nodes for new in _expand(flow, node)]
    )


def _expand(flow: Dataflow, node: Node) -> list[Node]:
    op = node.op
    if not isinstance(op, FusedMatMul) or op.transBatchA or op.transBatchB:
        return [node]
    types = [flow.graph.type(name) for name in node.inputs]
    transposed = (op.transA, op.transB)
    if any(t is None or t.shape is None or len(t.shape) < 2 for t in types):
        return [node]
    nodes, operands = [], list(node.inputs)
    for position, is_transposed in enumerate(transposed):
        if is_transposed:
            rank = len(flow.extents(operands[position]))
            perm = (*range(rank - 2), rank - 1, rank - 2)
            output = flow.fresh(f"{node.output}.{'xy'[position]}")
            inputs = (operands[position],)
            transpose = Transpose(perm=perm)
            new = replace(node, op=transpose, inputs=inputs, outputs=(output,))
            nodes.append(new)
            operands[position] = output
    product = replace(node, op=MatMul(), inputs=tuple(operands))
    return [*nodes, *_scale(flow, product, node)]


def _scale(flow: Dataflow, product: Node, node: Node) -> list[Node]:
    """Return ``product`` times the ``alpha`` of ``node``, with the name of ``node``."""
    alpha = node.op.attrs()["alpha"]
    if alpha == 1:
        return [product]
    name = flow.fresh(f"{node.output}.product")
    factor = number(flow.graph, alpha, flow.graph.types[node.output].dtype)
    inputs = (name, factor)
    return [replace(product, outputs=(name,)), replace(node, op=Mul(), inputs=inputs)]
