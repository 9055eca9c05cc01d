"""Dead code elimination: removes nodes whose results are not needed."""

from dataclasses import replace

from burn_import.rewriting.graphs import captures, with_nodes
from burn_ir.graph import Graph, Node

#: Operators whose last results are optional, so that they can be dropped.
OPTIONAL = frozenset(
    {("", "BatchNormalization"), ("", "Dropout"), ("", "LayerNormalization")}
    | {("", "MaxPool"), ("burn", "AdaptiveMaxPool")}
)


def dead_code(graph: Graph) -> Graph:
    """Return ``graph`` without nodes whose outputs are not needed.

    Inputs and defaults stay. Captured operands that no body reads are removed, unread
    outputs become None, and branches compute only the results that are needed.
    """
    needed = set(graph.outputs)
    live: list[Node] = []
    for node in reversed(graph.nodes):
        if needed.isdisjoint(node.outputs):
            continue
        if graph.has_bodies or len(node.outputs) > 1:
            node = _without_captures(_without_outputs(node, needed))
        live.append(node)
        needed.update(filter(None, node.inputs))
    live.reverse()
    return with_nodes(graph, live)


def _without_outputs(node: Node, needed: set[str]) -> Node:
    """Return ``node`` with None for unneeded outputs other than the first.

    The first output is kept because it names the node. An ``If`` and operators with
    optional results lose unneeded outputs altogether, so that a layer has one result.
    """
    if node.op.onnx == "If" and not node.op.domain:
        return _without_results(node, needed)
    rest = tuple(n if n in needed else None for n in node.outputs[1:])
    outputs = (node.outputs[0], *rest)
    while len(outputs) > 1 and outputs[-1] is None and _is_optional(node):
        outputs = outputs[:-1]
    if outputs == node.outputs:
        return node
    if len(outputs) < len(node.outputs):
        op = node.op.with_attrs(results=len(outputs))
        return replace(node, op=op, outputs=outputs)
    return replace(node, outputs=outputs)


def _is_optional(node: Node) -> bool:
    return (node.op.domain, node.op.onnx) in OPTIONAL


def _without_results(node: Node, needed: set[str]) -> Node:
    positions = [i for i, name in enumerate(node.outputs) if name in needed]
    if len(positions) == len(node.outputs):
        return node
    bodies = {
        name: dead_code(
            replace(body, outputs=tuple(body.outputs[i] for i in positions))
        )
        for name, body in node.op.bodies().items()
    }
    op = node.op.with_attrs(**bodies)
    return replace(node, op=op, outputs=tuple(node.outputs[i] for i in positions))


def _without_captures(node: Node) -> Node:
    """Return ``node`` without captured operands that no body reads."""
    count = captures(node)
    if not count:
        return node
    bodies = node.op.bodies()
    read: set[str | None] = set()
    for body in bodies.values():
        read.update(body.outputs)
        read.update(name for inner in body.nodes for name in inner.inputs)
    captured = tuple(name for name in node.inputs[-count:] if name in read)
    if len(captured) == count:
        return node
    read_names = tuple(name for name in captured if name is not None)
    closed = {
        name: replace(
            body, inputs=(*body.inputs[: len(body.inputs) - count], *read_names)
        )
        for name, body in bodies.items()
    }
    op = node.op.with_attrs(**closed)
    return replace(
        node, op=op, inputs=(*node.inputs[: len(node.inputs) - count], *read_names)
    )
