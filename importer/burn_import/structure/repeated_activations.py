"""Activations that an exporter merged across the modules of a list.

PyTorch's exporter computes an activation once that several modules apply to one
operand, such as the residual blocks of a vocoder. Each of them has its own again, so
that they have equal code and one result.
"""

from collections.abc import Iterator
from dataclasses import replace

from burn_import.provenance.path_segments import Path, common
from burn_import.rewriting.graphs import value_names
from burn_import.structure.places import Places
from burn_ir.graph import Graph, Node
from burn_ir.names import free_name
from burn_ir.types import Type


def with_own_activations(graph: Graph, node_paths: Places) -> tuple[Graph, Places]:
    """Return ``graph`` with an activation in each module of a list that reads it.

    The module must read the operand of the activation as well, from outside: a mask
    that only the first module computes is shared.
    """
    run = _Repetition(graph, node_paths)
    for node in graph.nodes:
        for member in run.other_members(node):
            run.repeat(node, member)
    if not run.copies:
        return graph, node_paths
    nodes = [one for node in graph.nodes for one in run.nodes(node)]
    graph = replace(graph, nodes=tuple(nodes), types=run.types)
    return graph, replace(node_paths, layers=run.layers, scopes=run.scopes)


class _Repetition:
    def __init__(self, graph: Graph, node_paths: Places) -> None:
        self.graph = graph
        self.layers, self.scopes = dict(node_paths.layers), dict(node_paths.scopes)
        self.types: dict[str, Type] = dict(graph.types)
        self.names = value_names(graph)
        self.users = graph.users
        #: The copies in front of their first reader, by its identity.
        self.copies: dict[int, list[Node]] = {}
        #: The names of results of copies, by reader and name of the original.
        self.renamed: dict[int, dict[str, str]] = {}

    def other_members(self, node: Node) -> Iterator[Path]:
        """Yield the modules of the list that read an activation and its operand."""
        operand = _operand(self.graph, node)
        if operand is None or id(node) in self.layers or node.op.bodies():
            return
        own, result = self.scopes[id(node)], node.outputs[0] or ""
        producer = self.graph.producers.get(operand)
        source = () if producer is None else self.scopes[id(producer)]
        members = {
            _sibling(own, self.scopes[id(u)]) for u in self.users.get(result, ())
        }
        readers = [self.scopes[id(user)] for user in self.users[operand]]
        for member in sorted(filter(None, members)):
            is_outside = source[: len(member)] not in (member, own[: len(member)])
            if is_outside and any(scope[: len(member)] == member for scope in readers):
                yield member

    def repeat(self, node: Node, member: Path) -> None:
        """Add a copy of ``node`` to the module at ``member``."""
        result = str(node.outputs[0])
        readers = [
            user
            for user in self.users[result]
            if self.scopes[id(user)][: len(member)] == member
        ]
        name = free_name(result, self.names, self.graph.constants)
        self.names.add(name)
        self.types[name] = self.types[result]
        copy = replace(node, outputs=(name,))
        self.scopes[id(copy)] = (*member, *self.scopes[id(node)][len(member) :])
        self.copies.setdefault(id(readers[0]), []).append(copy)
        for user in readers:
            self.renamed.setdefault(id(user), {})[result] = name

    def nodes(self, node: Node) -> Iterator[Node]:
        """Yield a node with the results of copies as operands, after these copies."""
        yield from self.copies.get(id(node), ())
        names = self.renamed.get(id(node))
        if names is None:
            yield node
            return
        inputs = tuple(names.get(name or "", name) for name in node.inputs)
        changed = replace(node, inputs=inputs)
        self.scopes[id(changed)] = self.scopes[id(node)]
        if id(node) in self.layers:
            self.layers[id(changed)] = self.layers[id(node)]
        yield changed


def _operand(graph: Graph, node: Node) -> str | None:
    """Return the only computed operand of an activation, None for other nodes."""
    computed = [n for n in node.inputs if n is not None and n not in graph.constants]
    stored = [n for n in node.inputs if n is not None and n in graph.constants]
    if len(computed) != 1 or len(node.outputs) != 1 or node.outputs[0] is None:
        return None
    if not node.op.deterministic or any(graph.constants[n].size > 1 for n in stored):
        return None
    is_activation = graph.types[node.outputs[0]] == graph.types[computed[0]]
    return computed[0] if is_activation else None


def _sibling(own: Path, other: Path) -> Path | None:
    """Return the module around ``other`` in the list with the module at ``own``."""
    depth = len(common([own, other]))
    both = (own[depth : depth + 1], other[depth : depth + 1])
    return other[: depth + 1] if all(p and p[0].isdigit() for p in both) else None
