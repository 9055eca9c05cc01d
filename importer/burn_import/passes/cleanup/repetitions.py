"""Removes operators that invert or repeat the one before them."""

from burn_import.rewriting.graphs import with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.shape import Identity

#: Involutions: operators that are their own inverse, exactly and in every dtype.
INVOLUTIONS = frozenset({"BitwiseNot", "Neg", "Not"})
#: Idempotent operators.
IDEMPOTENT = frozenset({"Abs", "Ceil", "Floor", "Relu", "Round", "Sign"})
IDENTITY = Identity()


def repetitions(graph: Graph) -> Graph:
    """Return ``graph`` with ``Identity`` for ``-(-x)``, ``relu(relu(x))`` and so on.

    ``1 / (1 / x)`` is rounded and stays.
    """
    producers = dict(graph.producers)
    nodes = []
    for node in graph.nodes:
        new = _once(node, producers)
        if new is not node:
            producers[new.output] = new
        nodes.append(new)
    return with_nodes(graph, nodes)


def _once(node: Node, producers: dict[str, Node]) -> Node:
    name = node.inputs[0] if node.inputs else None
    first = None if name is None else producers.get(name)
    if first is None or node.op.domain or first.op.domain:
        return node
    if first.op.onnx != node.op.onnx:
        return node
    if node.op.onnx in INVOLUTIONS:
        return node.with_op(IDENTITY, first.inputs)
    if node.op.onnx in IDEMPOTENT:
        return node.with_op(IDENTITY, node.inputs)
    return node
