"""Passing of tensors from the modules that own them to the modules that read them."""

from collections.abc import Iterator
from dataclasses import replace

from burn_import.provenance.path_segments import Path, clean, common
from burn_import.provenance.weight_owners import called_again
from burn_import.rewriting.arrays import memory_of
from burn_import.rewriting.graphs import value_names, with_nodes
from burn_import.structure.folded_expressions import infer_derived, layer_constants
from burn_import.structure.listed_tensors import home_of
from burn_ir.graph import Graph, Node
from burn_ir.names import free_name
from burn_ir.ops.shape import Identity


def pass_tensors_down(graph: Graph) -> Graph:
    """Return ``graph`` with tensors read only in or around their owning module.

    A module that reads a tensor of another one, such as a parametrization its
    ``original``, gets the value as an input. If the module has the tensor under
    another name, it reads it by that name.
    """
    if not graph.constants.trained:
        return graph
    run = _HandingDown(graph)
    nodes = [inner for node in graph.nodes for inner in run.nodes(node)]
    result = with_nodes(graph, nodes)
    if not run.values:
        return result
    graph.constants.derived.update(run.values.values())
    return infer_derived(result)


class _HandingDown:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.again = called_again(graph)
        self.names = value_names(graph)
        #: The passed values, by tensor and by the module that passes it.
        self.values: dict[tuple[str, Path], str] = {}
        self.names_by_memory: dict[tuple[int, ...], list[str]] = {}
        for name in graph.constants.trained:
            if name in graph.constants:
                memory = memory_of(graph.constants[name])
                self.names_by_memory.setdefault(memory, []).append(name)

    def nodes(self, node: Node) -> Iterator[Node]:
        """Yield ``node``, after nodes that pass it the tensors of other modules."""
        scope = clean(self.again.get(node.scope, node.scope))
        weights = set(layer_constants(self.graph, node))
        inputs = list(node.inputs)
        for position, name in enumerate(inputs):
            if name is None or name in weights or name not in self.graph.constants:
                continue
            home = home_of(self.graph, name)
            if home is None or not scope or is_within(home, scope):
                continue
            inputs[position] = second = self._second_name(name, scope)
            if second == name:
                around = common([scope, home])
                if (name, around) not in self.values:
                    yield self._identity_node(node, name, around)
                inputs[position] = self.values[name, around]
        same = tuple(inputs) == node.inputs
        yield node if same else replace(node, inputs=tuple(inputs))

    def _second_name(self, name: str, scope: Path) -> str:
        """Return a name of the tensor in the module at ``scope``, else ``name``."""
        array = self.graph.constants[name]
        for other in self.names_by_memory.get(memory_of(array), ()):
            if clean(other.split("."))[:-1] == scope:
                return other
        return name

    def _identity_node(self, node: Node, name: str, around: Path) -> Node:
        value = free_name(f"{name}.handed", self.names, self.graph.constants)
        self.names.add(value)
        self.values[name, around] = value
        depth = len(around)
        scope, classes = node.scope[:depth], node.classes[:depth]
        return Node(Identity(), (name,), (value,), "", scope, classes)


def is_within(home: Path, scope: Path) -> bool:
    """Return whether a module is at ``scope`` or inside of it.

    Scopes may lack the path of the module around the whole model.
    """
    return home[: len(scope)] == scope or home[-len(scope) :] == scope
