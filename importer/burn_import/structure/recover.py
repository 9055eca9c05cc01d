"""Recovery of the module tree of a graph: contiguous scopes become modules."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import chain

from burn_import.provenance.operator_scopes import with_layer_scopes
from burn_import.provenance.path_segments import Path
from burn_import.structure.blocks import with_blocks
from burn_import.structure.border_views import move_border_views
from burn_import.structure.boundary import boundary
from burn_import.structure.calls.grouping import Group, Invocations, arrange
from burn_import.structure.calls.sizes import with_common_sizes, with_targets
from burn_import.structure.hoisting import (
    hoist_shared_nodes,
    with_input_extents,
    with_outer_shapes,
)
from burn_import.structure.module_paths import assign_paths
from burn_import.structure.module_tree import (
    IfCall,
    Instruction,
    ModuleNode,
    SubmoduleCall,
    Tree,
    layers_in,
)
from burn_import.structure.places import Places
from burn_import.structure.quantizers.layers import with_quantizers
from burn_import.structure.quantizers.scopes import move_quantizers
from burn_import.structure.repeated_activations import with_own_activations
from burn_import.structure.scopes.module_scopes import ModuleScopes
from burn_import.structure.scopes.unscoped_nodes import with_affine_scopes
from burn_import.structure.sequential import find_sequences
from burn_import.structure.shared_classes import share_classes, signature
from burn_import.structure.sibling_hoisting import hoist_like_siblings
from burn_import.structure.state_owners import hold_states, share_inner_tensors
from burn_import.structure.unused_weights import hold_unread
from burn_import.structure.wrappers import without_wrapper
from burn_import.tracing.identifiers import Namespace, camel, singular
from burn_ir.graph import FUNCTION, Graph, Node, nested_nodes
from burn_ir.layers import layer_of
from burn_ir.op import Layer
from burn_ir.ops.control import If

#: The counter of a repeated name: ``conv_2``.
COUNTER = re.compile(r"(?<![\d_])(_\d+)+$")
#: Minimum nodes, exclusive, of ``If`` branches that become modules.
LONG_BODIES = 12


def recover(graph: Graph, class_name: str, keeps_keys: bool = True) -> Tree:
    """Return the module tree of ``graph``, whose root is called ``class_name``.

    With ``keeps_keys`` a wrapper is removed: keys begin with its attribute anyway.
    """
    graph = with_layer_scopes(with_input_extents(graph))
    root = whole_part(graph, (), class_name)
    hold_states(root)
    share_inner_tensors(root)
    hold_unread(root)
    return share_classes(without_wrapper(root) if keeps_keys else root)


def whole_part(graph: Graph, path: Path, class_name: str) -> ModuleNode:
    """Return a graph, or a subgraph, as a module at ``path``."""
    forks = {id(node) for node in graph.nodes if _has_long_branches(node)}
    node_paths = assign_paths(graph, forks, is_body=bool(path))
    if not path:
        node_paths = with_blocks(graph, node_paths)
        node_paths.scopes = with_affine_scopes(graph, node_paths.scopes)
        graph, node_paths = with_outer_shapes(graph, node_paths)
        graph, node_paths = with_own_activations(graph, node_paths)
    hoisted = hoist_shared_nodes(graph, node_paths)
    node_paths = hoist_like_siblings(graph, node_paths, hoisted)
    node_paths = move_border_views(graph, node_paths)
    node_paths = move_quantizers(graph, node_paths)
    node_paths = with_quantizers(graph, node_paths)
    run = _Recovery(graph, node_paths, forks, path)
    items = run.items((), list(graph.nodes), run.modules)
    if run.open_targets:
        return whole_part(with_targets(graph, run.open_targets), path, class_name)
    return ModuleNode(
        path,
        camel(class_name),
        items,
        list(graph.arguments),
        list(graph.results),
        graph,
        run.relative(graph.nodes, ()),
    )


def _has_long_branches(node: Node) -> bool:
    """Return whether a node is an ``If`` with long branches with weights."""
    if not isinstance(node.op, If):
        return False
    if sum(1 for _ in nested_nodes(node)) <= LONG_BODIES + 1:
        return False
    return any(
        layer_of(body, inner) is not None
        for body in node.op.bodies().values()
        for inner in body.nodes
    )


class _Recovery:
    def __init__(
        self, graph: Graph, node_paths: Places, forks: Collection[int], around: Path
    ) -> None:
        self.graph = graph
        self.layers = node_paths.layers
        self.scopes = dict(node_paths.scopes)
        self.forks = forks
        self.around = around
        #: Layers that may run outside of their module, by the node that runs them.
        self.separate_layers = [
            (id(node), path, layer)
            for node in graph.nodes
            if id(node) in node_paths.moved
            or (node.op.bodies() and id(node) not in forks)
            for path, _, layer in layers_in(node, graph, self.layers)
        ]
        # Branch names must differ from all module and layer names.
        paths = (*node_paths.layers.values(), *node_paths.scopes.values())
        self.fork_names = Namespace(name for path in paths for name in path)
        self.order = {id(node): i for i, node in enumerate(graph.nodes)}
        self.users = graph.users
        self.sequences = find_sequences(graph, self.layers, self.users)
        self.member: dict[int, Path] = {}
        self.modules = self._settle_sequences()
        self.invocations = Invocations(graph, self.layers, self.users)
        #: The inputs of the modules that are being recovered, the innermost last.
        self.inputs_around = [list(graph.arguments)]
        #: Targets of reshapes with which calls of a module have the same code.
        self.open_targets: dict[int, list[int]] = {}
        #: Whether calls have the same code, by the identity of their first nodes.
        self.equal: dict[tuple[tuple[int, int], ...], bool] = {}

    def _settle_sequences(self) -> set[Path]:
        """Drop sequences with submodules; return the scopes of all modules.

        A step runs where its sequence is called, even if it has a scope of its
        own.
        """
        recorded = dict(self.scopes)
        while True:
            self.member = {
                id(node): path
                for path, chains in self.sequences.items()
                for node in chain.from_iterable(chains)
            }
            self.scopes = {**recorded, **self.member}
            candidates = ModuleScopes(self.graph, self.layers, self.scopes, self.users)
            modules = candidates.with_classes()
            enclosing = {path[:n] for path in modules for n in range(len(path))}
            mixed = enclosing & set(self.sequences)
            if not mixed:
                return modules
            for path in mixed:
                del self.sequences[path]

    def items(
        self, scope: Path, nodes: Sequence[Node], modules: set[Path]
    ) -> list[Instruction]:
        """Return a scope's instructions: its own nodes and submodule calls."""
        arranged = arrange(
            self.groups(scope, nodes, modules),
            self.order,
            lambda group: self.groups(group.key or (), group.nodes, modules),
        )
        return [self.item(scope, group, modules) for group in arranged]

    def item(self, scope: Path, group: Group, modules: set[Path]) -> Instruction:
        """Return a call of the group's module, or its only node."""
        if group.key is not None:
            return self.call(scope, group, modules)
        (node,) = group.nodes
        return self.fork(scope, node) if id(node) in self.forks else node

    def fork(self, scope: Path, node: Node) -> IfCall:
        """Return the branches of an ``If`` as modules."""
        sides = [
            self.side(scope, node, body, word)
            for body, word in (("then_branch", "then"), ("else_branch", "otherwise"))
        ]
        return IfCall(node, sides[0], sides[1])

    def side(self, scope: Path, node: Node, body: str, word: str) -> SubmoduleCall:
        graph = node.op.bodies()[body]
        name = self.fork_names.unique(word)
        part = whole_part(graph, (*self.around, *scope, name), name)
        read = {n for inner in graph.nodes for n in inner.inputs} | set(graph.outputs)
        part.inputs = [operand for operand in graph.inputs if operand in read]
        outer = dict(zip(graph.inputs, node.inputs[1:], strict=True))
        inputs = [outer[operand] or "" for operand in part.inputs]
        return SubmoduleCall((name,), part, inputs, part.outputs)

    def groups(
        self, scope: Path, nodes: Sequence[Node], modules: set[Path]
    ) -> list[Group]:
        """Group ``nodes`` by the outermost module below ``scope`` that they run in."""
        groups: dict[Path, Group] = {}
        for node in nodes:
            key = self._child(scope, node, modules) or self._sequence(scope, node)
            group_key = key or ("", str(id(node)))
            groups.setdefault(group_key, Group(key, [])).nodes.append(node)
        return [
            call for group in groups.values() for call in self._calls_in(group, modules)
        ]

    def _calls_in(self, group: Group, modules: set[Path]) -> list[Group]:
        """Return a group for each call of the group's module."""
        key = group.key
        if key is None:
            return [group]
        if key in self.sequences:
            own = set(map(id, group.nodes))
            chains = (chain for chain in self.sequences[key] if id(chain[0]) in own)
            return [Group(key, chain) for chain in chains]
        for calls, separate_layers in self.invocations.possible(group):
            if self._have_equal_code(calls, modules):
                return [*calls, *separate_layers]
            graphs = with_common_sizes(self.graph, [call.nodes for call in calls])
            for call, graph in zip(calls, graphs or (), strict=False):
                call.graph = graph
            if graphs and self._have_equal_code(calls, modules):
                return [*calls, *separate_layers]
        self.open_targets |= self.invocations.open_targets(group)
        return [group]

    def _have_equal_code(self, calls: Sequence[Group], modules: set[Path]) -> bool:
        """Return whether modules of these calls have the same code."""
        ends = tuple((id(call.nodes[0]), id(call.graph)) for call in calls)
        if ends not in self.equal:
            parts = [self.call((), call, modules).part for call in calls]
            first, *others = map(signature, parts)
            self.equal[ends] = all(other == first for other in others)
        return self.equal[ends]

    def _sequence(self, scope: Path, node: Node) -> Path | None:
        path = self.member.get(id(node))
        return path if path is not None and len(path) > len(scope) else None

    def _child(self, scope: Path, node: Node, modules: set[Path]) -> Path | None:
        """Return the outermost module below ``scope`` that ``node`` runs in."""
        inner = self.scopes[id(node)]
        for length in range(len(scope) + 1, len(inner) + 1):
            if inner[:length] in modules and inner[: len(scope)] == scope:
                return inner[:length]
        return None

    def call(self, scope: Path, group: Group, modules: set[Path]) -> SubmoduleCall:
        """Return the call of a group's module."""
        around, self.graph = self.graph, group.graph or self.graph
        call = self._call(scope, group, modules)
        self.graph = around
        return call

    def _call(self, scope: Path, group: Group, modules: set[Path]) -> SubmoduleCall:
        assert group.key is not None
        sequence = group.key in self.sequences
        around = () if sequence else self.inputs_around[-1]
        inputs, outputs = boundary(self.graph, group.nodes, self.users, around)
        exporter_name = self.exporter_class(group)
        function = exporter_name.startswith(FUNCTION)
        exporter_name = exporter_name.removeprefix(FUNCTION)
        self.inputs_around.append(inputs)
        items: list[Instruction] = (
            list(group.nodes)
            if sequence
            else self.items(group.key, group.nodes, modules)
        )
        self.inputs_around.pop()
        part = ModuleNode(
            (*self.around, *group.key),
            self.class_name(group.key, exporter_name),
            items,
            inputs,
            outputs,
            self.graph,
            self.relative(group.nodes, group.key),
            sequence,
            bool(exporter_name),
            kept=self.layers_run_outside(group, modules),
            function=function,
        )
        return SubmoduleCall(group.key[len(scope) :], part, inputs, outputs)

    def class_name(self, path: Path, exporter_name: str) -> str:
        """Return the class name of a module: the exporter's, or from its path."""
        return camel(exporter_name, "Part") if exporter_name else class_name(path)

    def layers_run_outside(self, group: Group, modules: set[Path]) -> dict[Path, Layer]:
        """Return the layers of this module that run outside of it."""
        layers = {}
        key = group.key or ()
        for number, path, layer in self.separate_layers:
            inner = {path[:length] for length in range(len(key) + 1, len(path))}
            is_ours = path[: len(key)] == key and not inner & modules
            if is_ours and self.scopes[number][: len(key)] != key:
                layers[path[len(key) :]] = layer
        return layers

    def relative(self, nodes: Sequence[Node], scope: Path) -> dict[int, Path]:
        """Return the paths of layers among ``nodes``, relative to ``scope``."""
        paths: dict[int, Path] = {}
        for node in nodes:
            for inner in [node] if id(node) in self.forks else nested_nodes(node):
                path = self.layers.get(id(inner))
                if path is not None:
                    paths[id(inner)] = path[len(scope) :]
        return paths

    def exporter_class(self, group: Group) -> str:
        """Return the exporter's class name, or ""."""
        assert group.key is not None
        depth = len(group.key)
        for node in group.nodes:
            if len(node.classes) >= depth and len(node.scope) >= depth:
                return node.classes[depth - 1]
        return ""


def class_name(path: Path) -> str:
    """Return a class name from an attribute; from two if it is reserved.

    A single letter is combined with the previous word, else with ``part``. The
    attribute ``m`` of a wrapper becomes ``Model``.
    """
    words = [
        singular(segment) if after.isdigit() else segment
        for segment, after in zip(path, [*path[1:], ""], strict=True)
        if not segment.isdigit()
    ]
    word = words[-1]
    if len(word) == 1:
        return _single_letter_class(path, words)
    name = camel(COUNTER.sub("", word) or word, "Part")
    is_reserved = name.startswith("Part") and not word.lower().startswith("part")
    return camel("_".join(words[-2:]), "Part") if is_reserved else name


def _single_letter_class(path: Path, words: list[str]) -> str:
    if path[-1].isdigit():
        return "Block"
    if path == ("m",):
        return "Model"
    last = next((word for word in reversed(words) if len(word) > 1), "part")
    return camel(f"{last}_{words[-1]}", "Part")
