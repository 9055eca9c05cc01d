"""Leaves to broadcasting what is expanded to the shape of what it meets."""

from __future__ import annotations

from dataclasses import replace

from burn_import.passes.dataflow import Dataflow
from burn_import.passes.rewrite import changed
from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node

#: Operators of one element of each operand, which are broadcast.
ELEMENTWISE = frozenset(
    {
        "Add",
        "And",
        "BitwiseAnd",
        "BitwiseOr",
        "BitwiseXor",
        "Div",
        "Equal",
        "Greater",
        "GreaterOrEqual",
        "Less",
        "LessOrEqual",
        "Max",
        "Min",
        "Mod",
        "Mul",
        "Or",
        "Pow",
        "Sub",
        "Where",
        "Xor",
    }
)


def expansions(graph: Graph) -> Graph:
    """``graph`` without ``Expand`` of operands that are broadcast in any case.

    That is so if each extent that an operand is given is the one of another operand.
    """
    if all(node.op.onnx != "Expand" for node in graph.nodes):
        return graph
    flow = Dataflow(graph)
    return changed(graph, [_narrowed(node, flow) for node in graph.nodes])


def _narrowed(node: Node, flow: Dataflow) -> Node:
    if node.op.domain or node.op.onnx not in ELEMENTWISE:
        return node
    inputs = list(node.inputs)
    for position, name in enumerate(node.inputs):
        wide = flow.made_by(name, "Expand")
        if wide is None or wide.inputs[0] is None:
            continue
        others = [flow.extents(n) for i, n in enumerate(inputs) if i != position]
        if _is_covered(flow.extents(wide.output), flow, wide.inputs[0], others):
            inputs[position] = wide.inputs[0]
    same = tuple(inputs) == node.inputs
    return node if same else replace(node, inputs=tuple(inputs))


def _is_covered(
    shape: tuple[Dim, ...],
    flow: Dataflow,
    narrow: str,
    others: list[tuple[Dim, ...]],
) -> bool:
    """Whether ``narrow`` or one of ``others`` has each extent of ``shape``."""
    own = flow.graph.type(narrow)
    if not shape or own is None or own.shape is None:
        return False
    found = [own.shape, *others]
    return all(
        any(len(s) >= behind and s[-behind] == shape[-behind] for s in found)
        for behind in range(1, len(shape) + 1)
    )
