"""The tree of modules that a graph is emitted as."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from burn_import.provenance.path_segments import Path
from burn_import.tracing.identifiers import Namespace
from burn_ir.graph import Graph, Node, nested_nodes
from burn_ir.layers import layer_of
from burn_ir.op import Layer


@dataclass(frozen=True)
class State:
    """A stored array that a call of a module replaces, with its value names.

    ``before`` is the value that the module reads, ``after`` the value at the end.
    """

    constant: str
    before: str
    after: str


@dataclass(eq=False)
class ModuleNode:
    """A module: its instructions, in order, its inputs and its outputs.

    ``path`` is its attribute path from the root. ``layer_paths`` maps the identity
    of each layer node to its path relative to this module. A ``sequence`` is an
    ``nn.Sequential`` of layers and functions, without a class of its own.
    """

    path: Path
    class_name: str
    items: list[Instruction]
    inputs: list[str]
    outputs: list[str]
    #: The graph of the instructions: the model's, or a subgraph.
    graph: Graph
    layer_paths: Mapping[int, Path]
    sequence: bool = False
    #: Whether the class name is the exporter's; else it is from the attribute.
    has_exporter_name: bool = False
    #: Whether it is a local function of the model.
    function: bool = False
    #: States that a call replaces; ``inputs`` and ``outputs`` do not include them.
    states: list[State] = field(default_factory=list)
    #: Stored arrays that are attributes of this module and read by an enclosing one,
    #: with their attribute paths; () for one that nothing reads.
    lent_arrays: dict[str, Path] = field(default_factory=dict)
    #: Attribute paths of arrays in submodules that this module reads.
    reached: dict[str, str] = field(default_factory=dict)
    #: The attribute of each stored array that the code reads itself, by its name; set
    #: when the class is written.
    tensors: dict[str, str] = field(default_factory=dict)
    #: The layers by path; set when the class is written.
    layers: dict[Path, Layer] = field(default_factory=dict)
    #: Layers that are attributes here and run in an enclosing module.
    kept: dict[Path, Layer] = field(default_factory=dict)

    def nodes(self) -> Iterator[Node]:
        """Yield the nodes that this module runs itself, including subgraphs."""
        for item in self.items:
            if isinstance(item, Node):
                yield from nested_nodes(item)

    def layer_weights(self) -> dict[str, Path]:
        """Return the path of the first layer parameter of each stored array."""
        owners: dict[str, Path] = {}
        for node in self.nodes():
            path = self.layer_paths.get(id(node))
            layer = None if path is None else self.layers.get(path)
            if path is not None and layer is not None:
                for name, position in layer.weights.items():
                    owners.setdefault(str(node.inputs[position]), (*path, name))
        return owners


@dataclass(eq=False)
class SubmoduleCall:
    """A call of a submodule; ``path`` is relative to the caller."""

    path: Path
    part: ModuleNode
    inputs: list[str]
    outputs: list[str]


@dataclass(eq=False)
class IfCall:
    """An ``If`` whose branches are submodules; one of the two is called."""

    node: Node
    then: SubmoduleCall
    orelse: SubmoduleCall


Instruction = Node | SubmoduleCall | IfCall


def layers_of(part: ModuleNode) -> Iterator[tuple[Path, Node, Layer]]:
    """Yield the layers that a module runs itself, with their relative paths."""
    for item in part.items:
        if isinstance(item, Node):
            yield from layers_in(item, part.graph, part.layer_paths)


def layers_in(
    node: Node, graph: Graph, paths: Mapping[int, Path]
) -> Iterator[tuple[Path, Node, Layer]]:
    """Yield the layers of a node and of its subgraphs, with their ``paths``."""
    if id(node) in paths:
        layer = layer_of(graph, node)
        if layer is not None:
            yield paths[id(node)], node, layer
    for body in node.op.bodies().values():
        for inner in body.nodes:
            yield from layers_in(inner, body, paths)


def calls_of(item: Instruction) -> list[SubmoduleCall]:
    """Return the submodule calls in an instruction."""
    if isinstance(item, IfCall):
        return [item.then, item.orelse]
    return [item] if isinstance(item, SubmoduleCall) else []


def changes_state(part: ModuleNode) -> bool:
    """Return whether a call of ``part`` replaces states, its own or inner ones."""
    inside = (call.part for item in part.items for call in calls_of(item))
    return bool(part.states) or any(map(changes_state, inside))


@dataclass(frozen=True)
class Entry:
    """A stored array of a module: its key, its name in the graph, and its layer.

    ``layer`` is the layer's class, "" for an array that the code reads itself.
    """

    key: Path
    constant: str
    layer: str


@dataclass(eq=False)
class Tree:
    """The tree of modules, with the representative of each class."""

    root: ModuleNode
    #: Modules to write a class for, in the order of the file.
    classes: list[ModuleNode]
    #: The representative of each module, by identity.
    model: dict[int, ModuleNode]
    #: All modules, parents before children.
    parts: list[ModuleNode]
    #: Reserved class names.
    names: Namespace

    def instances(self, classes: Collection[str]) -> list[Path]:
        """Return the paths of modules with these class names."""
        paths = (part.path for part in self.parts if part.class_name in classes)
        return list(dict.fromkeys(paths))

    def entries(self) -> list[Entry]:
        """Return every stored array of the tree, in order of definition.

        Of a module that is called both as a whole and layer by layer, each use
        is listed.
        """
        return list(self._entries(self.root, ()))

    def classes_by_path(self) -> dict[Path, str]:
        """Return the class of each module by where the keys of its arrays begin.

        Sequences have no class of their own, "".
        """
        classes: dict[Path, str] = {}
        _add_classes(self.root, (), classes)
        return classes

    def _entries(self, part: ModuleNode, prefix: Path) -> Iterator[Entry]:
        model = self.model[id(part)]
        seen: set[Path] = set()
        for ours, theirs in zip(part.nodes(), model.nodes(), strict=True):
            path = model.layer_paths.get(id(theirs))
            if path is None or path in seen:
                continue
            seen.add(path)
            layer = model.layers[path]
            for name, position in layer.weights.items():
                constant = ours.inputs[position]
                assert constant is not None
                yield Entry((*prefix, *path, name), constant, layer.name)
        constant_of = dict(zip(_reads(model), _reads(part), strict=True))
        for constant, attribute in model.tensors.items():
            key = (*prefix, *attribute.split("."))
            yield Entry(key, constant_of.get(constant, constant), "")
        called: set[Path] = set()
        for call in (call for item in part.items for call in calls_of(item)):
            if call.path not in called:
                called.add(call.path)
                yield from self._entries(call.part, (*prefix, *call.path))


def _add_classes(part: ModuleNode, prefix: Path, classes: dict[Path, str]) -> None:
    """Add the class of ``part``, whose keys begin with ``prefix``, and of its parts."""
    classes[prefix] = "" if part.sequence else part.class_name
    for call in (call for item in part.items for call in calls_of(item)):
        path = (*prefix, *call.path)
        if path not in classes:
            _add_classes(call.part, path, classes)


def _reads(part: ModuleNode) -> list[str]:
    """Return all names that the module's own nodes read, in order and repeated."""
    return [
        name
        for node in part.nodes()
        for names in (node.inputs, *(b.outputs for b in node.op.bodies().values()))
        for name in names
        if name is not None
    ] + [*part.outputs, *(state.constant for state in part.states), *part.lent_arrays]
