"""The tree of modules that a graph is emitted as."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from burn_import.source.names import Namespace
from burn_ir.graph import Graph, Node
from burn_ir.op import Layer
from burn_ir.types import Array

Path = tuple[str, ...]


@dataclass(eq=False)
class Part:
    """A module: what it runs, in order, and what flows in and out.

    ``path`` is its attribute path from the root. ``layer_paths`` holds the path,
    relative to this part, of each node that is a layer, by the node's identity.
    A ``sequence`` is an ``nn.Sequential`` of layers and functions, not a class.
    """

    path: Path
    class_name: str
    items: list[Item]
    inputs: list[str]
    outputs: list[str]
    #: The graph that the items are of: the model's, or a body.
    graph: Graph
    layer_paths: Mapping[int, Path]
    sequence: bool = False
    #: Whether the exporter told the class; else it is called after the attribute.
    told: bool = False
    #: The attribute of each stored array that the code reads itself, by its name;
    #: known once the class is written.
    tensors: dict[str, str] = field(default_factory=dict)
    #: What the layers are, by path; known once the class is written.
    layers: dict[Path, Layer] = field(default_factory=dict)

    def nodes(self) -> Iterator[Node]:
        """The nodes that this part runs itself, those of bodies included."""
        for item in self.items:
            if isinstance(item, Node):
                yield from with_bodies(item)


@dataclass(eq=False)
class Call:
    """A call of a part; ``path`` is relative to the caller."""

    path: Path
    part: Part
    inputs: list[str]
    outputs: list[str]


@dataclass(eq=False)
class Fork:
    """An ``If`` whose long bodies are parts of their own: one of two calls."""

    node: Node
    then: Call
    orelse: Call


Item = Node | Call | Fork


def calls_of(item: Item) -> list[Call]:
    """The calls of parts in an item."""
    if isinstance(item, Fork):
        return [item.then, item.orelse]
    return [item] if isinstance(item, Call) else []


def with_bodies(node: Node) -> Iterator[Node]:
    """A node and all nodes of its bodies."""
    yield node
    for body in node.op.bodies().values():
        for inner in body.nodes:
            yield from with_bodies(inner)


@dataclass(eq=False)
class Tree:
    """The root, and for every part the one that its class is written from."""

    root: Part
    #: Parts to write a class for, in the order of the file.
    classes: list[Part]
    #: The part that stands for each part, by identity.
    model: dict[int, Part]
    #: All parts, each before those inside it.
    parts: list[Part]
    #: The names of classes that are taken.
    names: Namespace

    def instances(self, classes: Collection[str]) -> list[Path]:
        """The paths at which classes of these names are used."""
        return [part.path for part in self.parts if part.class_name in classes]

    def weights(self, graph: Graph) -> list[tuple[str, Array]]:
        """The record: (key, array) for every stored array, in order of definition."""
        return list(self._weights(self.root, (), graph))

    def _weights(
        self, part: Part, prefix: Path, graph: Graph
    ) -> Iterator[tuple[str, Array]]:
        model = self.model[id(part)]
        seen: set[Path] = set()
        for ours, theirs in zip(part.nodes(), model.nodes(), strict=True):
            path = model.layer_paths.get(id(theirs))
            if path is None or path in seen:
                continue
            seen.add(path)
            for name, position in model.layers[path].weights.items():
                constant = ours.inputs[position]
                assert constant is not None
                yield ".".join((*prefix, *path, name)), graph.constants[constant]
        twins = dict(zip(_reads(model), _reads(part), strict=True))
        for constant, attribute in model.tensors.items():
            array = graph.constants[twins.get(constant, constant)]
            yield ".".join((*prefix, attribute)), array
        called: set[Path] = set()
        for call in (call for item in part.items for call in calls_of(item)):
            if call.path not in called:
                called.add(call.path)
                yield from self._weights(call.part, (*prefix, *call.path), graph)


def _reads(part: Part) -> list[str]:
    """Every name the part's own nodes read, in order, repetitions included."""
    return [
        name
        for node in part.nodes()
        for names in (node.inputs, *(b.outputs for b in node.op.bodies().values()))
        for name in names
        if name is not None
    ] + part.outputs
