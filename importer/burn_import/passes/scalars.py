"""Puts a number in place of a tensor that repeats it, where it broadcasts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from burn_import.passes.arrays import number
from burn_import.passes.dataflow import Dataflow
from burn_import.passes.rewrite import changed
from burn_ir.graph import Graph, Node
from burn_ir.types import Array, Type

#: Operators that broadcast their operands to the shape of the result.
BROADCASTING = frozenset(
    [
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Mod",
        "Pow",
        "Min",
        "Max",
        "Where",
        "Equal",
        "Less",
        "LessOrEqual",
        "Greater",
        "GreaterOrEqual",
        "And",
        "Or",
    ]
)


def scalars(graph: Graph) -> Graph:
    """``graph`` with scalars for ``ConstantOfShape`` and expanded stored numbers.

    An elementwise operator repeats a scalar by itself. The tensor stays where it alone
    makes the result as large as it is.
    """
    flow = Dataflow(graph)
    return changed(graph, [_narrowed(flow, node) for node in graph.nodes])


def _narrowed(flow: Dataflow, node: Node) -> Node:
    if node.op.domain or node.op.onnx not in BROADCASTING:
        return node
    for position, name in enumerate(node.inputs):
        repeated = _repeated(flow, name)
        if repeated is not None and _is_free(flow, node, position):
            scalar = number(flow.graph, repeated.item(), repeated.dtype)
            inputs = (*node.inputs[:position], scalar, *node.inputs[position + 1 :])
            node = replace(node, inputs=inputs)
    return node


def _repeated(flow: Dataflow, name: str | None) -> Array | None:
    """The one number, as an array, that a value is made of."""
    node = flow.made_by(name, "ConstantOfShape", "Expand")
    if node is None:
        return None
    if node.op.onnx == "Expand":
        stored = flow.stored(node.inputs[0])
        one = stored is not None and stored.size == 1 and stored.dtype.kind in "fiub"
        return stored if one else None
    value = node.op.attrs()["value"]
    return np.zeros(1, np.float32) if value is None else np.asarray(value)


def _is_free(flow: Dataflow, node: Node, position: int) -> bool:
    """Whether the result has its shape without that of one operand."""
    types = [flow.graph.type(name) for name in node.inputs]
    scalar, result = types[position], flow.graph.type(node.output)
    if scalar is None or result is None or result.shape is None:
        return False
    types[position] = Type(scalar.dtype, ())
    if any(t is None or t.shape is None for t in types):
        return False
    alone = node.op.infer(*types)
    return isinstance(alone, Type) and alone.shape == result.shape
