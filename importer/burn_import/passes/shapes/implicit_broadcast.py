"""Removes ``Expand`` and ``Tile`` in front of operators that broadcast."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from burn.dtypes import is_float
from burn_import.rewriting.arrays import literal
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.ops.creation import ConstantOfShape

#: Elementwise operators with broadcasting.
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


def implicit_broadcast(graph: Graph) -> Graph:
    """Return ``graph`` without ``Expand`` of operands that are broadcast anyway.

    An ``Expand``, or a ``Tile`` of axes of extent 1, is redundant if each extent of its
    result is also that of another operand. A filled tensor becomes a scalar by the same
    rule. For matrix products the rule applies to the axes before the matrices. Rows
    that are looked up (``Gather``) at expanded or repeated indices are looked up once.
    A weight that a module expands for several readers stays expanded where another
    module reads it, which would otherwise hold a copy.
    """
    if graph.operators.isdisjoint(("Expand", "Tile", "ConstantOfShape")):
        return graph
    flow = Dataflow(graph)
    nodes = [new for node in graph.nodes for new in _rewrite(node, flow)]
    return with_nodes(graph, nodes)


def _rewrite(node: Node, flow: Dataflow) -> list[Node]:
    """Return ``node`` or its replacement, behind the nodes that it needs."""
    if node.op.onnx == "MatMul" and not node.op.domain:
        return [_without_batch_expansions(node, flow)]
    if node.op.domain or node.op.onnx not in ELEMENTWISE:
        return [node]
    return _with_rows_once(_without_expansions(node, flow), flow)


def _without_batch_expansions(node: Node, flow: Dataflow) -> Node:
    """Return a matrix product without redundant ``Expand`` of batch axes."""
    inputs = list(node.inputs)
    for position, name in enumerate(node.inputs):
        wide = flow.made_by(name, "Expand")
        if wide is None:
            continue
        own, whole = flow.extents(wide.inputs[0]), flow.extents(name)
        other = flow.extents(inputs[1 - position])
        if len(own) < 2 or len(other) < 2 or own[-2:] != whole[-2:]:
            continue
        if len(whole) == 2 or is_covered(whole[:-2], [own[:-2], other[:-2]]):
            inputs[position] = wide.inputs[0]
    same = tuple(inputs) == node.inputs
    return node if same else replace(node, inputs=tuple(inputs))


def _without_expansions(node: Node, flow: Dataflow) -> Node:
    inputs = list(node.inputs)
    for position, name in enumerate(node.inputs):
        wide = flow.made_by(name, "Expand", "Tile", "ConstantOfShape")
        if wide is None or (wide.op.onnx == "Tile" and not _is_expansion(wide, flow)):
            continue
        other_shapes = [flow.extents(n) for i, n in enumerate(inputs) if i != position]
        own: tuple[Dim, ...] | None = ()
        if wide.op.onnx != "ConstantOfShape":
            t = flow.graph.type(wide.inputs[0])
            own = (
                None if t is None or _is_weight_of_other(wide, node, flow) else t.shape
            )
        if own is not None and is_covered(flow.extents(name), [own, *other_shapes]):
            inputs[position] = _before_expand(wide, flow)
    same = tuple(inputs) == node.inputs
    return node if same else replace(node, inputs=tuple(inputs))


def _is_weight_of_other(wide: Node, node: Node, flow: Dataflow) -> bool:
    """Return whether ``wide`` is another module's weight with several readers."""
    array = flow.stored(wide.inputs[0])
    if array is None or array.size < 2 or not is_float(array.dtype):
        return False
    return wide.scope != node.scope and len(flow.users[wide.output]) > 1


def _with_rows_once(node: Node, flow: Dataflow) -> list[Node]:
    """Return ``node`` behind new lookups for operands at repeated indices.

    Other operands must have each extent of the rows.
    """
    inputs, new = list(node.inputs), []
    for position, name in enumerate(node.inputs):
        gather = flow.made_by(name, "Gather")
        wide = gather and flow.made_by(gather.inputs[1], "Expand", "Tile")
        if gather is None or gather.op.attrs()["axis"] or wide is None:
            continue
        own = flow.extents(wide.inputs[0])
        rows = flow.extents(gather.inputs[0])[1:]
        others = [flow.extents(n) for i, n in enumerate(inputs) if i != position]
        if _is_expansion(wide, flow) and is_covered(
            flow.extents(name), [(*own, *rows), *others]
        ):
            inputs[position] = flow.fresh(f"{name}.once")
            operands = (gather.inputs[0], wide.inputs[0])
            outputs = (inputs[position],)
            new.append(replace(gather, inputs=operands, outputs=outputs))
    return [*new, replace(node, inputs=tuple(inputs)) if new else node]


def _is_expansion(wide: Node, flow: Dataflow) -> bool:
    """Return whether axes are repeated that have one element, and no others."""
    own, whole = flow.extents(wide.inputs[0]), flow.extents(wide.output)
    pairs = zip(own[::-1], whole[::-1], strict=False)  # aligned at the last axis
    return bool(own) and all(a in (1, b) for a, b in pairs)


def _before_expand(wide: Node, flow: Dataflow) -> str | None:
    """Return the operand of an ``Expand``, or the fill value of a tensor."""
    if not isinstance(wide.op, ConstantOfShape):
        return wide.inputs[0]
    fill = np.asarray(wide.op.fill)
    return literal(flow.graph, f"{fill.dtype}({fill})", fill)


def is_covered(shape: tuple[Dim, ...], others: Sequence[tuple[Dim, ...]]) -> bool:
    """Return whether ``others`` have each extent of ``shape``, which is not ().

    An extent of 1 is any other one's by broadcasting.
    """
    return bool(shape) and all(
        any(len(s) >= behind and shape[-behind] in (1, s[-behind]) for s in others)
        for behind in range(1, len(shape) + 1)
    )
