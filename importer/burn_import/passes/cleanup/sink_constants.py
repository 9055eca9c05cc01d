"""Moves what is made of stored weights alone to where it is used."""

from __future__ import annotations

from dataclasses import replace

from burn_ir.graph import Graph, Node


def placement(graph: Graph) -> Graph:
    """``graph`` with nodes of nothing but constants right before their first reader.

    Exporters write them in front of everything else, away from the layers whose weights
    they prepare. Such a node also takes the scope of its reader if it has none.
    """
    first: dict[str, int] = {}
    for place, node in enumerate(graph.nodes):
        for name in node.inputs:
            if name is not None:
                first.setdefault(name, place)
    before: dict[int, list[Node]] = {}
    for node in graph.nodes:
        read = [first[name] for name in node.outputs if name in first]
        if read and _is_alone(graph, node):
            before.setdefault(id(graph.nodes[min(read)]), []).append(node)
    moved = {id(node) for nodes in before.values() for node in nodes}
    order: list[Node] = []
    for node in graph.nodes:
        if id(node) not in moved:
            order += [_beside(n, node) for n in before.get(id(node), ())]
            order.append(node)
    same = all(a is b for a, b in zip(order, graph.nodes, strict=True))
    return graph if same else graph.with_nodes(order)


def _is_alone(graph: Graph, node: Node) -> bool:
    """Whether ``node`` reads nothing but constants, and something."""
    names = [name for name in node.inputs if name is not None]
    fixed = bool(names) and all(name in graph.constants for name in names)
    return fixed and node.op.deterministic and node.outputs[0] is not None


def _beside(node: Node, reader: Node) -> Node:
    if node.scope or not reader.scope:
        return node
    return replace(node, scope=reader.scope, classes=reader.classes)
