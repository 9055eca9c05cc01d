"""Linear layers of a recurrent cell, and their weights as the cell's parameters."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from burn.dtypes import float32
from burn_import.rewriting.arrays import derive, digest, origins
from burn_import.rewriting.dataflow import Dataflow
from burn_ir.graph import Node
from burn_ir.types import Array

_DOTTED = re.compile(r"^[A-Za-z_]\w*(\.\w+)+$")


@dataclass(frozen=True)
class GateSplit:
    """A value split into gates, their order, and the nodes that split it."""

    source: str
    gates: tuple[int, ...]
    nodes: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Products:
    """The two linear layers of a cell, the nodes that add them, and extra biases.

    If ``sided``, the first layer is the input's and the second the state's.
    """

    layers: tuple[Node, Node]
    vectors: tuple[str | None, str | None]
    nodes: tuple[Node, ...]
    sided: bool = False


@dataclass
class CellWeights:
    """Weights of the cells that are recovered."""

    flow: Dataflow
    order: dict[int, int] = field(init=False)
    #: Weights of states, known because a step reads a state with them.
    recurrent: set[str] = field(default_factory=set)
    #: One name for constants of equal contents, so that steps of one cell are equal.
    names: dict[tuple[tuple[int, ...], bytes], str] = field(default_factory=dict)
    same: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        nodes = self.flow.graph.nodes
        self.order = {id(node): number for number, node in enumerate(nodes)}

    def cut(self, pieces: list[str | None]) -> GateSplit | None:
        """Return the value that ``pieces`` split into equal parts, or None."""
        sources = [self.flow.piece(name) for name in pieces]
        first = sources[0]
        if first is None or first[0] is None or None in sources:
            return None
        width, gates = first[2] - first[1], []
        for piece in sources:
            assert piece is not None
            source, start, end = piece
            if source != first[0] or end - start != width or start % width:
                return None
            gates.append(start // width)
        extents = self.flow.extents(first[0])
        whole = len(extents) == 2 and extents[1] == width * len(gates)
        if not whole or sorted(gates) != list(range(len(gates))):
            return None
        makers = {id(n): n for n in (self.flow.producers[str(p)] for p in pieces)}
        return GateSplit(first[0], tuple(gates), tuple(makers.values()))

    def linear(self, name: str | None) -> Node | None:
        """Return the linear layer that produces a value."""
        node = None if name is None else self.flow.producers.get(name)
        if node is None or (node.op.domain, node.op.onnx) != ("burn", "Linear"):
            return None
        stored = [self.flow.stored(n) for n in node.inputs[1:]]
        fit = all(a is not None and a.dtype == float32 for a in stored)
        return node if fit and len(self.flow.extents(node.output)) == 2 else None

    def total(self, name: str, gates: int = 4) -> Products | None:
        """Return the two linear layers, and an optional vector, in a sum."""
        layers: list[Node] = []
        vectors: list[str] = []
        nodes: list[Node] = []
        waiting = [name]
        while waiting:
            value = waiting.pop()
            layer, add = self.linear(value), self.flow.made_by(value, "Add")
            if layer is not None:
                layers.append(layer)
            elif self.flow.stored(value) is not None:
                vectors.append(value)
            elif add is not None and len(nodes) < 4:
                nodes.append(add)
                waiting += [str(n) for n in reversed(add.inputs)]
            else:
                return None
        if len(layers) != 2 or len(vectors) > 1 or not nodes:
            return None
        rows = {self.weight(layer).shape[0] for layer in layers}
        widths = {self.weight(layer).shape[1] * gates for layer in layers}
        if len(rows) != 1 or rows.isdisjoint(widths):
            return None
        arrays = [self.flow.graph.constants[v] for v in vectors]
        if any(a.dtype != float32 or a.shape != (*rows,) for a in arrays):
            return None
        vector = vectors[0] if vectors else None
        return Products((layers[0], layers[1]), (vector, None), tuple(nodes))

    def two(self, x: str, h: str, state: str) -> Products | None:
        """Return the linear layers of the input and of the ``state``."""
        layers = (self.linear(x), self.linear(h))
        if layers[0] is None or layers[1] is None:
            return None
        state_operand = layers[1].inputs[0]
        zeros = self.flow.magnitude(state_operand) == 0 == self.flow.magnitude(state)
        hidden = self.weight(layers[1]).shape[1]
        if hidden * 3 != self.weight(layers[1]).shape[0]:
            return None
        if state_operand != state and not zeros:
            return None
        return Products((layers[0], layers[1]), (None, None), (), sided=True)

    def weight(self, layer: Node) -> Array:
        """Return the matrix of a linear layer."""
        return self.flow.graph.constants[str(layer.inputs[1])]

    def learn(self, steps: Sequence[tuple[Products, str]]) -> None:
        """Record the weights that read a state, from steps and their states.

        A weight that reads a state, or zeros, in one step does so in all steps.
        """
        states = {state for _, state in steps}
        for products, _ in steps:
            for layer in products.layers:
                operand = layer.inputs[0]
                if operand in states or self.flow.magnitude(operand) == 0:
                    self.recurrent.add(self.shared(str(layer.inputs[1])))

    def sides(self, products: Products) -> tuple[Node, Node]:
        """Return the linear layers of the input and of the state.

        The equations are symmetric: without evidence the first layer is the input's.
        """
        first, second = products.layers
        if products.sided:
            return first, second
        leaves = [self.leaf(str(layer.inputs[1])) for layer in products.layers]
        if leaves in (["weight_ih", "weight_hh"], ["weight_hh", "weight_ih"]):
            return (first, second) if leaves[0] == "weight_ih" else (second, first)
        is_recurrent = [
            self.shared(str(n.inputs[1])) in self.recurrent for n in products.layers
        ]
        square = [
            4 * self.weight(n).shape[1] == self.weight(n).shape[0]
            for n in products.layers
        ]
        for evidence in (square, is_recurrent):
            if evidence[0] != evidence[1]:
                return (second, first) if evidence[0] else (first, second)
        return first, second

    def are_named(self, products: Products) -> bool:
        """Return whether the file names the weights as those of a cell."""
        leaves = {self.leaf(str(layer.inputs[1])) for layer in products.layers}
        return leaves == {"weight_ih", "weight_hh"}

    def leaf(self, name: str) -> str:
        """Return the last segment of a weight's dotted name in the file, else ""."""
        origin = list(origins(self.flow.graph.constants, name))[-1]
        return origin.rpartition(".")[2] if _DOTTED.match(origin) else ""

    def operands(
        self, products: Products, gates: tuple[int, ...]
    ) -> tuple[str | None, str | None, tuple[str, ...]] | None:
        """Return the input, the state and the parameters of a cell.

        None if the weights are not those of a cell. If only one layer has a bias, the
        other bias is zeros.
        """
        layers = self.sides(products)
        for layer, leaf in zip(layers, ("weight_ih", "weight_hh"), strict=True):
            if self.leaf(str(layer.inputs[1])) not in ("", leaf):
                return None
        rows, width = self.weight(layers[1]).shape
        if rows != width * len(gates):
            return None
        vectors = [(*layer.inputs, None)[2] for layer in layers]
        for vector in (v for v in products.vectors if v is not None):
            if None not in vectors:
                return None
            vectors[vectors.index(None)] = vector
        names = [str(layer.inputs[1]) for layer in layers]
        if vectors != [None, None]:
            names += [self.zeros(names[1]) if v is None else v for v in vectors]
        weights = tuple(self.shared(self.ordered(name, gates)) for name in names)
        return layers[0].inputs[0], layers[1].inputs[0], weights

    def ordered(self, name: str, gates: tuple[int, ...]) -> str:
        """Return the name of a weight with its gates in PyTorch's order."""
        if gates == tuple(range(len(gates))):
            return name
        array = self.flow.graph.constants[name]
        pieces = np.split(array, len(gates))
        reordered = np.concatenate([pieces[gate] for gate in gates])
        return derive(self.flow.graph, name, reordered, ".gates")

    def zeros(self, weight: str) -> str:
        """Return the name of a bias of zeros for ``weight``."""
        rows = self.flow.graph.constants[weight].shape[0]
        key = f"{weight}.zeros"
        if key not in self.flow.graph.constants:
            self.flow.graph.constants.add(key, np.zeros(rows, np.float32))
        return key

    def shared(self, name: str) -> str:
        """Return one name for constants of equal contents without keys."""
        if self.leaf(name):
            return name
        if name not in self.same:
            array = self.flow.graph.constants[name]
            key = (array.shape, digest(array))
            self.same[name] = self.names.setdefault(key, name)
        return self.same[name]
