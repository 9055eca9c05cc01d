"""Nodes that compute angles from integers, which half a float's digits are too few for.

Position 4095 is no bfloat16, and its sine is another number than that of 4096.
"""

from __future__ import annotations

from collections.abc import Mapping

from burn_ir.graph import Graph, Node

#: What makes numbers of ``x`` in turns: the end of an angle's way.
TURNS = frozenset({"Cos", "Sin"})
#: What leads from positions to angles.
STEPS = frozenset(
    {"Add", "Concat", "Div", "Einsum", "Expand", "Flatten", "Gather", "Identity"}
    | {"MatMul", "Mul", "Neg", "Pow", "Reciprocal", "Reshape", "Slice", "Squeeze"}
    | {"Sub", "Tile", "Transpose", "Unsqueeze", "Where"}
)


def angles(graph: Graph) -> set[int]:
    """The identities of nodes that make sines and cosines of integers, all the way.

    They depend on integers and constants alone, and nothing else reads what lies
    between. Casts from integers are among them, where they begin.
    """
    producers, users = graph.producers, graph.users
    angle_nodes: set[int] = set()
    for node in graph.nodes:
        if node.op.onnx in TURNS and not node.op.domain and id(node) not in angle_nodes:
            angle_nodes |= _way(node, graph, producers) or set()
    for node in reversed(graph.nodes):
        if id(node) in angle_nodes and node.op.onnx not in TURNS:
            readers = users.get(node.output, [])
            if node.output in graph.outputs or any(
                id(r) not in angle_nodes for r in readers
            ):
                angle_nodes.discard(id(node))
    return angle_nodes


def _way(turn: Node, graph: Graph, producers: Mapping[str, Node]) -> set[int] | None:
    """The nodes before ``turn`` down to integers; None if another value leads there."""
    ancestors: set[int] = set()
    pending = [turn]
    while pending:
        node = pending.pop()
        if id(node) in ancestors:
            continue
        ancestors.add(id(node))
        for name in node.inputs:
            value_type = graph.type(name)
            if name is None or value_type is None or value_type.dtype.kind in "biu":
                continue
            source = producers.get(name)
            if source is None and name in graph.constants and name not in graph.inputs:
                continue
            if source is None or not _leads(source):
                return None
            pending.append(source)
    return ancestors


def _leads(node: Node) -> bool:
    return not node.op.domain and (node.op.onnx in STEPS or node.op.onnx == "Cast")
