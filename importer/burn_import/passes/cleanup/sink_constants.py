"""Moves computations on constants alone to their first reader."""

from __future__ import annotations

from dataclasses import replace

from burn_ir.graph import Graph, Node


def sink_constants(graph: Graph) -> Graph:
    """Return ``graph`` with constant-only nodes right before their first reader.

    Exporters write them in front of everything else, away from the layers whose weights
    they prepare. A node without scope also takes the scope of its reader.
    """
    first: dict[str, int] = {}
    for position, node in enumerate(graph.nodes):
        for name in node.inputs:
            if name is not None:
                first.setdefault(name, position)
    before: dict[int, list[Node]] = {}
    for node in graph.nodes:
        read = [first[name] for name in node.outputs if name in first]
        if read and _is_alone(graph, node):
            before.setdefault(id(graph.nodes[min(read)]), []).append(node)
    moved = {id(node) for nodes in before.values() for node in nodes}
    order: list[Node] = []
    for node in graph.nodes:
        if id(node) not in moved:
            order += [_in_reader_scope(n, node) for n in before.get(id(node), ())]
            order.append(node)
    same = all(a is b for a, b in zip(order, graph.nodes, strict=True))
    return graph if same else graph.with_nodes(order)


def _is_alone(graph: Graph, node: Node) -> bool:
    """Return whether ``node`` has operands and all are constants."""
    names = [name for name in node.inputs if name is not None]
    fixed = bool(names) and all(name in graph.constants for name in names)
    return fixed and node.op.deterministic and node.outputs[0] is not None


def _in_reader_scope(node: Node, reader: Node) -> Node:
    if node.scope or not reader.scope:
        return node
    return replace(node, scope=reader.scope, classes=reader.classes)
