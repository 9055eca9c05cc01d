"""Expands onnxruntime's ``SkipLayerNormalization`` to a residual sum and a norm."""

from collections.abc import Sequence
from dataclasses import replace

from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.op import Op
from burn_ir.ops.elementwise import Add
from burn_ir.ops.microsoft.norm import (
    SkipLayerNormalization,
    SkipSimplifiedLayerNormalization,
)
from burn_ir.ops.norm import LayerNormalization, RMSNormalization

_OPERATORS = (SkipLayerNormalization, SkipSimplifiedLayerNormalization)
#: The position of the sum among the results; the statistics are before it.
_SUM = 3


def expand_skip_norms(graph: Graph) -> Graph:
    """Return ``graph`` with ``Add`` and a norm for onnxruntime's fused operators.

    The norm is then a layer, and the bias that onnxruntime moved here is that of the
    product before. Nodes whose statistics are read stay. Results may differ by
    rounding.
    """
    if not any(operator.onnx in graph.operators for operator in _OPERATORS):
        return graph
    flow = Dataflow(graph)
    return with_nodes(
        graph, [new for node in graph.nodes for new in _expand(flow, node)]
    )


def _expand(flow: Dataflow, node: Node) -> list[Node]:
    norm = _norm(node.op)
    outputs = (*node.outputs, *[None] * (_SUM + 1))
    if norm is None or _are_read(outputs[1:_SUM], flow):
        return [node]
    x, skip, *rest = node.inputs
    weights = rest[: 2 if isinstance(norm, LayerNormalization) else 1]
    bias = next(iter(rest[len(weights) :]), None)
    terms = _ordered_terms(flow, x, skip, bias)
    total = outputs[_SUM] or flow.fresh(f"{node.outputs[0]}.sum")
    partial = [flow.fresh(f"{node.outputs[0]}.partial") for _ in terms[2:]]
    nodes, value = [], terms[0]
    for term, result in zip(terms[1:], (*partial, total), strict=True):
        nodes.append(replace(node, op=Add(), inputs=(value, term), outputs=(result,)))
        value = result
    inputs = (total, *[name for name in weights if name is not None])
    return [*nodes, replace(node, op=norm, inputs=inputs, outputs=node.outputs[:1])]


def _ordered_terms(
    flow: Dataflow, x: str | None, skip: str | None, bias: str | None
) -> list[str | None]:
    """Return the terms in the order in which they are added.

    The bias that onnxruntime moved out of a product is next to it again; any other is
    added last, as by the fused operator.
    """
    if bias is None:
        return [x, skip]
    if flow.made_by(x, "MatMul"):
        return [x, bias, skip]
    return [skip, bias, x] if flow.made_by(skip, "MatMul") else [x, skip, bias]


def _are_read(names: Sequence[str | None], flow: Dataflow) -> bool:
    """Return whether a node or the caller reads one of ``names``."""
    return any(
        name is not None and (flow.users.get(name) or name in flow.outputs)
        for name in names
    )


def _norm(op: Op) -> Op | None:
    """Return the norm inside of a fused operator; None for other operators."""
    if isinstance(op, SkipLayerNormalization):
        return LayerNormalization(epsilon=op.epsilon)
    if isinstance(op, SkipSimplifiedLayerNormalization):
        return RMSNormalization(epsilon=op.epsilon)
    return None
