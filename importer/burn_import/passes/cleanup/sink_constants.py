"""Moves computations on constants alone to their first reader."""

from collections import defaultdict
from dataclasses import replace

from burn_import.rewriting.dataflow import Dataflow
from burn_ir.graph import Graph, Node

#: Operators whose results are views, which a copy does not compute again.
_VIEWS = frozenset({"Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"})


def sink_constants(graph: Graph) -> Graph:
    """Return ``graph`` with constant-only nodes right before their first reader.

    Exporters write them in front of everything else, away from the layers whose weights
    they prepare. A node without scope also takes the scope of its reader. A view that
    several modules read is copied into each of them: exporters merge those of equal
    weights.
    """
    graph = _with_copies(graph)
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


def _with_copies(graph: Graph) -> Graph:
    """Return ``graph`` with a copy of each view for each other module that reads it.

    Nodes with bodies read what the others read, since captures have one name.
    """
    flow, views = Dataflow(graph), dict[str, Node]()
    #: The copied values of each module, by the name of the value.
    copies: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.op.onnx in _VIEWS and node.scope and _is_alone(graph, node):
            views.update((name, node) for name in node.outputs if name is not None)
        if node.op.bodies() or not node.scope:
            nodes.append(node)
            continue
        own = copies[node.scope]
        for view in {
            id(v): v for n in node.inputs if (v := views.get(n or ""))
        }.values():
            inside = node.scope[: len(view.scope)] == view.scope
            if inside or not own.keys().isdisjoint(filter(None, view.outputs)):
                continue
            own.update((n, flow.fresh(n)) for n in view.outputs if n is not None)
            outputs = tuple(None if n is None else own[n] for n in view.outputs)
            nodes.append(
                replace(view, outputs=outputs, scope=node.scope, classes=node.classes)
            )
        inputs = tuple(None if n is None else own.get(n, n) for n in node.inputs)
        nodes.append(node if inputs == node.inputs else replace(node, inputs=inputs))
    return graph if len(nodes) == len(graph.nodes) else graph.with_nodes(nodes)


def _is_alone(graph: Graph, node: Node) -> bool:
    """Return whether ``node`` has operands and all are constants."""
    names = [name for name in node.inputs if name is not None]
    fixed = bool(names) and all(name in graph.constants for name in names)
    return fixed and node.op.deterministic and node.outputs[0] is not None


def _in_reader_scope(node: Node, reader: Node) -> Node:
    if node.scope or not reader.scope:
        return node
    return replace(node, scope=reader.scope, classes=reader.classes)
