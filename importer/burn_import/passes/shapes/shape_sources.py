"""Reads shapes from values that are computed anyway.

TensorFlow computes the first step of a recurrent layer only for the shape of its
result. The step, with its layers, is dead code once the shape is read elsewhere.
"""

from __future__ import annotations

from dataclasses import replace

from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.types import Type

Shape = tuple[Dim, ...]


def shape_sources(graph: Graph) -> Graph:
    """Return ``graph`` with other operands of ``Shape`` for values read by it alone.

    The operand becomes the first value of the same shape, whose extents are equal for
    every size of the inputs.
    """
    if not any(_is_shape(node) for node in graph.nodes):
        return graph
    users, outputs = graph.users, set(graph.outputs)
    first: dict[Shape, str] = {}
    for name in graph.inputs:
        _note(first, graph, name)
    nodes: list[Node] = []
    for node in graph.nodes:
        operand = node.inputs[0] if node.inputs else None
        if operand is not None and _is_shape(node) and operand in graph.producers:
            only = operand not in outputs and all(map(_is_shape, users[operand]))
            shape = graph.types[operand].shape
            source = first.get(shape, operand) if only and shape else operand
            if source != operand:
                node = replace(node, inputs=(source,))
        nodes.append(node)
        for name in filter(None, node.outputs):
            if name in outputs or not all(map(_is_shape, users.get(name, ()))):
                _note(first, graph, name)
    if all(a is b for a, b in zip(nodes, graph.nodes, strict=True)):
        return graph
    return graph.with_nodes(nodes)


def _is_shape(node: Node) -> bool:
    return node.op.onnx == "Shape" and not node.op.domain


def _note(first: dict[Shape, str], graph: Graph, name: str) -> None:
    t = graph.types[name]
    if t.shape is not None and type(t) is Type:  # no list of tensors
        first.setdefault(t.shape, name)
