"""Numbered layers in a chain, with functions between them: ``nn.Sequential``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from burn_import.provenance.path_segments import Path
from burn_import.tracing.trace import Apply, Block, Symbol, Tracer
from burn_ir.errors import Undecided
from burn_ir.graph import Graph, Node

Users = Mapping[str, Sequence[Node]]


def find_sequences(
    graph: Graph, layers: Mapping[int, Path], users: Users
) -> dict[Path, list[Node]]:
    """The nodes of each ``nn.Sequential`` of layers and functions, in order, by path.

    A list that holds anything but numbered layers of ``graph`` itself (a module with
    layers inside, a named layer, one that a body calls) is none of them.
    """
    members: dict[Path, list[Node]] = {}
    for node in graph.nodes:
        path = layers.get(id(node))
        if path is not None and path[-1].isdigit():
            members.setdefault(path[:-1], []).append(node)
    outputs = set(graph.outputs)
    mixed = _lists_with_others(layers, members)
    members = {
        path: nodes
        for path, nodes in members.items()
        if path not in mixed
        and _flows_in(nodes[0], graph)
        and all(_takes_one(node, graph) for node in nodes)
    }
    chains = {
        path: _chain(nodes, layers, users, outputs) for path, nodes in members.items()
    }
    return {path: chain for path, chain in chains.items() if len(chain) > 1}


def _lists_with_others(
    layers: Mapping[int, Path], members: Mapping[Path, Sequence[Node]]
) -> set[Path]:
    """The paths in ``members`` that have other layers inside."""
    own = {id(node) for nodes in members.values() for node in nodes}
    found = set()
    for node, path in layers.items():
        # A member of a list stands in the lists around that one as well.
        length = len(path) - 1 if node in own else len(path)
        found |= {path[:n] for n in range(length)}
    return found


def _flows_in(node: Node, graph: Graph) -> bool:
    """Whether the first operand is handed to the module that ``node`` is in.

    Stored arrays, and integers that follow from extents, are read where they are used.
    """
    name = node.inputs[0]
    if name is None or name in graph.constants:
        return False
    return graph.types[name].known is None


def _takes_one(node: Node, graph: Graph) -> bool:
    """Whether a layer is called with the first operand, and gives one result."""
    layer = node.op.layer(*(graph.type(name) for name in node.inputs))
    return layer is not None and layer.data == (0,) and len(node.outputs) == 1


def _chain(
    nodes: Sequence[Node], layers: Mapping[int, Path], users: Users, outputs: set[str]
) -> list[Node]:
    """``nodes`` with the functions between and after them; empty if no chain."""
    chain: list[Node] = []
    place = -1
    for node in nodes:
        number = int(layers[id(node)][-1])
        if chain:
            chain += _functions(chain[-1], users, outputs, number - place - 1)
            if node not in _next(chain[-1], users, outputs):
                return []
        if number <= place:
            return []
        chain.append(node)
        place = number
    return chain + _functions(chain[-1], users, outputs, 1)


def _next(node: Node, users: Users, outputs: set[str]) -> list[Node]:
    """The only reader of the only result of ``node``, if there is one."""
    results = [name for name in node.outputs if name is not None]
    if len(results) != 1 or results[0] in outputs:
        return []
    readers = users.get(results[0], [])
    alone = len(readers) == 1 and readers[0].inputs[0] == results[0]
    return list(readers) if alone else []


def _functions(node: Node, users: Users, outputs: set[str], most: int) -> list[Node]:
    """At most ``most`` plain functions that take what ``node`` gives, one by one."""
    found: list[Node] = []
    while len(found) < most:
        after = _next(node, users, outputs)
        if not after or function_name(after[0]) is None:
            break
        node = after[0]
        found.append(node)
    return found


def function_name(node: Node) -> str | None:
    """The primitive that a node is, if it is one function of one value."""
    if len(node.inputs) != 1 or node.op.bodies():
        return None
    tracer, block = Tracer(), Block()
    tracer.blocks.append(block)
    operand = tracer.symbol(None)
    try:
        result = tracer.lower(node.op, [operand])
    except Undecided:
        return None
    if len(block.statements) != 1 or isinstance(result, tuple):
        return None
    (call,) = block.statements
    return _plain(call, operand.data) if isinstance(call, Apply) else None


def _plain(call: Apply, operand: Symbol) -> str | None:
    alone = len(call.args) == 1 and call.args[0].data is operand and not call.static
    name: str = call.primitive.name
    return name if alone else None
