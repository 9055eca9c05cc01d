"""The tree of modules that a graph is emitted as."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from burn_import.provenance.path_segments import Path
from burn_import.tracing.identifiers import Namespace
from burn_ir.graph import Graph, Node, nested_nodes
from burn_ir.op import Layer


@dataclass(frozen=True)
class State:
    """A stored array that a call of a module replaces, with its value names.

    ``before`` is what the part reads of it, ``after`` what it is at the end.
    """

    constant: str
    before: str
    after: str


@dataclass(eq=False)
class ModuleNode:
    """A module: its instructions, in order, its inputs and its outputs.

    ``path`` is its attribute path from the root. ``layer_paths`` holds the path,
    relative to this part, of each node that is a layer, by the node's identity.
    A ``sequence`` is an ``nn.Sequential`` of layers and functions, not a class.
    """

    path: Path
    class_name: str
    items: list[Instruction]
    inputs: list[str]
    outputs: list[str]
    #: The graph that the items are of: the model's, or a body.
    graph: Graph
    layer_paths: Mapping[int, Path]
    sequence: bool = False
    #: Whether the exporter told the class; else it is called after the attribute.
    has_exporter_name: bool = False
    #: Whether it is a local function of the model.
    function: bool = False
    #: What a call of this part replaces; ``inputs`` and ``outputs`` do not name them.
    states: list[State] = field(default_factory=list)
    #: Stored arrays that are attributes of this part, and read by one around it.
    held: list[str] = field(default_factory=list)
    #: Where those that this part reads are, from its attributes on.
    reached: dict[str, str] = field(default_factory=dict)
    #: The attribute of each stored array that the code reads itself, by its name;
    #: known once the class is written.
    tensors: dict[str, str] = field(default_factory=dict)
    #: What the layers are, by path; known once the class is written.
    layers: dict[Path, Layer] = field(default_factory=dict)
    #: Layers that are kept here and run in a module around this one.
    kept: dict[Path, Layer] = field(default_factory=dict)

    def nodes(self) -> Iterator[Node]:
        """The nodes that this part runs itself, those of bodies included."""
        for item in self.items:
            if isinstance(item, Node):
                yield from nested_nodes(item)

    def layer_weights(self) -> dict[str, Path]:
        """The path of the parameter of a layer that is each stored array's first."""
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
    """A call of a part; ``path`` is relative to the caller."""

    path: Path
    part: ModuleNode
    inputs: list[str]
    outputs: list[str]


@dataclass(eq=False)
class IfCall:
    """An ``If`` whose long bodies are parts of their own: one of two calls."""

    node: Node
    then: SubmoduleCall
    orelse: SubmoduleCall


Instruction = Node | SubmoduleCall | IfCall


def layers_of(part: ModuleNode) -> Iterator[tuple[Path, Node, Layer]]:
    """Yield the layers that a part runs itself, with their paths in it."""
    for item in part.items:
        if isinstance(item, Node):
            yield from layers_in(item, part.graph, part.layer_paths)


def layers_in(
    node: Node, graph: Graph, paths: Mapping[int, Path]
) -> Iterator[tuple[Path, Node, Layer]]:
    """Yield the layers among a node and those of its bodies, with their ``paths``."""
    if id(node) in paths:
        layer = node.op.layer(*(graph.type(name) for name in node.inputs))
        if layer is not None:
            yield paths[id(node)], node, layer
    for body in node.op.bodies().values():
        for inner in body.nodes:
            yield from layers_in(inner, body, paths)


def calls_of(item: Instruction) -> list[SubmoduleCall]:
    """The calls of parts in an item."""
    if isinstance(item, IfCall):
        return [item.then, item.orelse]
    return [item] if isinstance(item, SubmoduleCall) else []


def changes_state(part: ModuleNode) -> bool:
    """Return whether a call of ``part`` replaces states, its own or inner ones."""
    inside = (call.part for item in part.items for call in calls_of(item))
    return bool(part.states) or any(map(changes_state, inside))


@dataclass(frozen=True)
class Entry:
    """A stored array of a module: its key, its name in the graph, and whose it is.

    ``layer`` is the layer's class, "" for an array that the code reads itself.
    """

    key: Path
    constant: str
    layer: str


@dataclass(eq=False)
class Tree:
    """The root, and for every part the one that its class is written from."""

    root: ModuleNode
    #: Parts to write a class for, in the order of the file.
    classes: list[ModuleNode]
    #: The part that stands for each part, by identity.
    model: dict[int, ModuleNode]
    #: All parts, each before those inside it.
    parts: list[ModuleNode]
    #: The names of classes that are taken.
    names: Namespace

    def instances(self, classes: Collection[str]) -> list[Path]:
        """The paths at which classes of these names are used."""
        return [part.path for part in self.parts if part.class_name in classes]

    def entries(self) -> list[Entry]:
        """Every stored array of the tree, in order of definition.

        A module that is called whole at one place and layer by layer at another one
        is listed for each.
        """
        return list(self._entries(self.root, ()))

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
        twins = dict(zip(_reads(model), _reads(part), strict=True))
        for constant, attribute in model.tensors.items():
            key = (*prefix, *attribute.split("."))
            yield Entry(key, twins.get(constant, constant), "")
        called: set[Path] = set()
        for call in (call for item in part.items for call in calls_of(item)):
            if call.path not in called:
                called.add(call.path)
                yield from self._entries(call.part, (*prefix, *call.path))


def _reads(part: ModuleNode) -> list[str]:
    """Every name the part's own nodes read, in order, repetitions included."""
    return [
        name
        for node in part.nodes()
        for names in (node.inputs, *(b.outputs for b in node.op.bodies().values()))
        for name in names
        if name is not None
    ] + [*part.outputs, *(state.constant for state in part.states), *part.held]
