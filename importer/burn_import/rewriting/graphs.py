"""Shared rewriting functions: rename values in one sweep, and rewrite bodies.

A body is closed: its last inputs are the values that it captures, with the same names
inside as outside. ``rename`` preserves this, since only the names distinguish the
captured operands of a node from the others.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import chain
from operator import is_

from burn_ir.graph import Graph, Node

Pass = Callable[[Graph], Graph]


def apply_with_bodies(apply: Pass, graph: Graph) -> Graph:
    """Apply a function to all bodies of ``graph``, innermost first, and to itself.

    The same object is returned if nothing changed.
    """
    if not graph.has_bodies:
        return apply(graph)
    nodes = [
        _with_bodies(node, lambda body: apply_with_bodies(apply, body))
        for node in graph.nodes
    ]
    return apply(with_nodes(graph, nodes))


def _with_bodies(node: Node, rewrite: Pass) -> Node:
    bodies = node.op.bodies()
    if not bodies:
        return node
    new = {name: rewrite(body) for name, body in bodies.items()}
    if all(new[name] is body for name, body in bodies.items()):
        return node
    return replace(node, op=node.op.with_attrs(**new))


def with_nodes(graph: Graph, nodes: list[Node]) -> Graph:
    """Return ``graph`` with ``nodes``: the same object if they are its own."""
    if len(nodes) == len(graph.nodes) and all(map(is_, nodes, graph.nodes)):
        return graph
    return graph.with_nodes(nodes)


def value_names(graph: Graph) -> set[str]:
    """Return the names of all values of ``graph``: inputs and results of nodes.

    The store of constants is shared, so a name may be in it and be a value here.
    """
    outputs = chain.from_iterable(node.outputs for node in graph.nodes)
    return {*graph.inputs, *filter(None, outputs)}


def captures(node: Node) -> int:
    """Return how many of the last operands are captures of the node's bodies."""
    count = 0
    bodies = [body.inputs for body in node.op.bodies().values()]
    while bodies and count < len(node.inputs):
        name = node.inputs[-1 - count]
        if any(len(b) <= count or b[-1 - count] != name for b in bodies):
            break
        count += 1
    return count


def resolve(aliases: Mapping[str, str], name: str) -> str:
    """Return the name at the end of a chain of aliases."""
    while name in aliases:
        name = aliases[name]
    return name


def rename(graph: Graph, aliases: Mapping[str, str]) -> Graph:
    """Return ``graph`` with every value renamed to the end of its chain of aliases.

    Captured operands that became constants or duplicates are removed. The same object
    is returned if nothing changes.
    """
    final: dict[str, str] = {}
    for name in aliases:
        links = [name]
        while links[-1] in aliases and links[-1] not in final:
            links.append(aliases[links[-1]])
        last = final.get(links[-1], links[-1])
        final.update((link, last) for link in links[:-1])
    return _rename(graph, final)


def _rename(graph: Graph, final: Mapping[str, str]) -> Graph:
    values = {final.get(name, name) for name in value_names(graph)}
    nodes = [_rename_node(node, final, graph, values) for node in graph.nodes]
    outputs = tuple(final.get(name, name) for name in graph.outputs)
    result = with_nodes(graph, nodes)
    return result if outputs == graph.outputs else replace(result, outputs=outputs)


def _rename_node(
    node: Node, final: Mapping[str, str], graph: Graph, values: set[str]
) -> Node:
    inputs = tuple(None if n is None else final.get(n, n) for n in node.inputs)
    outputs = tuple(None if n is None else final.get(n, n) for n in node.outputs)
    count = captures(node)
    if count:
        return _with_captures(
            replace(node, outputs=outputs), inputs, count, graph, values
        )
    if inputs == node.inputs and outputs == node.outputs:
        return node
    return replace(node, inputs=inputs, outputs=outputs)


def _with_captures(
    node: Node,
    inputs: tuple[str | None, ...],
    count: int,
    graph: Graph,
    values: set[str],
) -> Node:
    """Return ``node`` with other captured operands, also in its bodies."""
    old, new = node.inputs[-count:], inputs[-count:]
    captures = tuple(
        dict.fromkeys(n for n in new if n in values or n not in graph.constants)
    )
    if captures == old and inputs == node.inputs:
        return node
    names = {a: b for a, b in zip(old, new, strict=True) if a and b and a != b}

    def rewrite(body: Graph) -> Graph:
        own = body.inputs[: len(body.inputs) - count]
        closed = (*own, *(name for name in captures if name is not None))
        types = {**body.types, **{b: body.types[a] for a, b in names.items()}}
        return _rename(replace(body, inputs=closed, types=types), names)

    node = _with_bodies(node, rewrite)
    return replace(node, inputs=(*inputs[: len(inputs) - count], *captures))


def common_scope(*nodes: Node) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the scope and classes of a node that replaces ``nodes``.

    It is the last node's scope, or the common prefix where scopes differ.
    """
    last = nodes[-1]
    length = 0
    for segments in zip(*(node.scope for node in nodes), strict=False):
        if len(set(segments)) > 1:
            break
        length += 1
    if all(len(node.scope) == length for node in nodes):
        return last.scope, last.classes
    return last.scope[:length], last.classes[:length]


def without_trailing(inputs: tuple[str | None, ...]) -> tuple[str | None, ...]:
    """Return operands without omitted ones at the end."""
    while inputs[-1] is None:
        inputs = inputs[:-1]
    return inputs
