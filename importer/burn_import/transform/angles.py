"""Nodes that compute angles from integers, which need more digits than half types.

Position 4095 has no exact bfloat16: it rounds to 4096, whose sine is another number.
"""

from __future__ import annotations

from collections.abc import Mapping

from burn_ir.graph import Graph, Node

#: Operators that end the computation of an angle.
SINES = frozenset({"Cos", "Sin"})
#: Operators between positions and angles.
STEPS = frozenset(
    {"Add", "Concat", "Div", "Einsum", "Expand", "Flatten", "Gather", "Identity"}
    | {"MatMul", "Mul", "Neg", "Pow", "Reciprocal", "Reshape", "Slice", "Squeeze"}
    | {"Sub", "Tile", "Transpose", "Unsqueeze", "Where"}
)


def angles(graph: Graph) -> set[int]:
    """Return the ids of the nodes from integers to the sines and cosines of angles.

    These nodes depend on integers and constants alone, and no other node reads their
    intermediate values. The casts from integers at their beginning are included.
    """
    producers, users = graph.producers, graph.users
    angle_nodes: set[int] = set()
    for node in graph.nodes:
        if node.op.onnx in SINES and not node.op.domain and id(node) not in angle_nodes:
            angle_nodes |= _angle_ancestors(node, graph, producers) or set()
    for node in reversed(graph.nodes):
        if id(node) in angle_nodes and node.op.onnx not in SINES:
            readers = users.get(node.output, [])
            if node.output in graph.outputs or any(
                id(r) not in angle_nodes for r in readers
            ):
                angle_nodes.discard(id(node))
    return angle_nodes


def _angle_ancestors(
    sine: Node, graph: Graph, producers: Mapping[str, Node]
) -> set[int] | None:
    """Return the ancestors of ``sine`` up to integers; None if one is a float input."""
    ancestors: set[int] = set()
    pending = [sine]
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
            if source is None or not _is_angle_step(source):
                return None
            pending.append(source)
    return ancestors


def _is_angle_step(node: Node) -> bool:
    return not node.op.domain and (node.op.onnx in STEPS or node.op.onnx == "Cast")
