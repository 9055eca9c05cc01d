"""The tree of parts of a graph: scopes become modules where they are whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from burn_import.compiler.names import camel
from burn_import.structure.boundary import boundary
from burn_import.structure.grouping import Group, arrange
from burn_import.structure.parts import Call, Item, Part, Path, Tree
from burn_import.structure.paths import places
from burn_import.structure.sequences import find_sequences
from burn_import.structure.sharing import share_classes
from burn_ir.graph import Graph, Node


def recover(graph: Graph, class_name: str) -> Tree:
    """The module tree of ``graph``, whose root is called ``class_name``."""
    found = places(graph)
    run = _Recovery(graph, found.layers, found.scopes)
    items = run.items((), list(graph.nodes), run.module_scopes())
    root = Part(
        (),
        camel(class_name),
        items,
        list(graph.inputs),
        list(graph.outputs),
        run.relative(graph.nodes, ()),
    )
    return share_classes(root, graph)


class _Recovery:
    def __init__(
        self, graph: Graph, layers: Mapping[int, Path], scopes: Mapping[int, Path]
    ) -> None:
        self.graph = graph
        self.layers = layers
        self.scopes = scopes
        self.order = {id(node): i for i, node in enumerate(graph.nodes)}
        self.users = graph.users()
        self.sequences = find_sequences(graph, layers, self.users)
        self.member = {
            id(node): path for path, nodes in self.sequences.items() for node in nodes
        }

    def module_scopes(self) -> set[Path]:
        """The scopes that are worth a class: more than a layer and a few operations."""
        own: dict[Path, int] = {}
        weights: dict[Path, int] = {}
        for node in self.graph.nodes:
            scope = self.scopes[id(node)]
            for length in range(1, len(scope) + 1):
                own[scope[:length]] = own.get(scope[:length], 0) + 1
                if id(node) in self.layers:
                    count = weights.get(scope[:length], 0) + 1
                    weights[scope[:length]] = count
        numbered = {
            scope
            for path in self.layers.values()
            for scope in (path[:-1],)
            if path[-1].isdigit()
        }
        return {
            scope
            for scope, count in own.items()
            if count > 1 and scope not in numbered and (weights.get(scope) or count > 4)
        } - self._containers(own)

    def _containers(self, own: Mapping[Path, int]) -> set[Path]:
        """Scopes with numbered children: lists, which run nothing themselves."""
        paths = {*own, *self.layers.values()}
        return {path[:-1] for path in paths if path[-1].isdigit()}

    def items(
        self, scope: Path, nodes: Sequence[Node], modules: set[Path]
    ) -> list[Item]:
        """What a module at ``scope`` runs: its own nodes, and calls of those inside."""
        arranged = arrange(
            self.groups(scope, nodes, modules),
            self.order,
            lambda group: self.groups(group.key or (), group.nodes, modules),
        )
        return [
            group.nodes[0] if group.key is None else self.call(scope, group, modules)
            for group in arranged
        ]

    def groups(
        self, scope: Path, nodes: Sequence[Node], modules: set[Path]
    ) -> list[Group]:
        """``nodes`` by the outermost module below ``scope`` that they run in."""
        found: dict[Path, Group] = {}
        for node in nodes:
            key = self._child(scope, node, modules) or self._sequence(scope, node)
            place = key or ("", str(id(node)))
            found.setdefault(place, Group(key, [])).nodes.append(node)
        return list(found.values())

    def _sequence(self, scope: Path, node: Node) -> Path | None:
        path = self.member.get(id(node))
        return path if path is not None and len(path) > len(scope) else None

    def _child(self, scope: Path, node: Node, modules: set[Path]) -> Path | None:
        """The outermost module below ``scope`` that ``node`` runs in."""
        inner = self.scopes[id(node)]
        for length in range(len(scope) + 1, len(inner) + 1):
            if inner[:length] in modules and inner[: len(scope)] == scope:
                return inner[:length]
        return None

    def call(self, scope: Path, group: Group, modules: set[Path]) -> Call:
        assert group.key is not None
        inputs, outputs = boundary(self.graph, group.nodes, self.users)
        sequence = group.key in self.sequences
        part = Part(
            group.key,
            self.class_name(group),
            (
                list(self.sequences[group.key])
                if sequence
                else self.items(group.key, group.nodes, modules)
            ),
            inputs,
            outputs,
            self.relative(group.nodes, group.key),
            sequence,
        )
        return Call(group.key[len(scope) :], part, inputs, outputs)

    def relative(self, nodes: Sequence[Node], scope: Path) -> dict[int, Path]:
        """The paths of layers among ``nodes``, from ``scope`` on."""
        found: dict[int, Path] = {}
        for node in nodes:
            for inner in _inner(node):
                path = self.layers.get(id(inner))
                if path is not None:
                    found[id(inner)] = path[len(scope) :]
        return found

    def class_name(self, group: Group) -> str:
        """The exporter's name of the class, else one made from the path."""
        assert group.key is not None
        depth = len(group.key)
        for node in group.nodes:
            if len(node.classes) >= depth and len(node.scope) >= depth:
                return camel(node.classes[depth - 1], "Part")
        words = [segment for segment in group.key if not segment.isdigit()]
        return camel(words[-1] if words else "part", "Part")


def _inner(node: Node) -> list[Node]:
    found = [node]
    for body in node.op.bodies().values():
        for inner in body.nodes:
            found += _inner(inner)
    return found
