"""Detection of repeated blocks in a graph without names of modules.

If neither weights nor nodes name modules, repetition is the only sign of a module
boundary. Each node is compared with the node at a fixed distance after it: both must
have the same operator and weights of the same shapes, and their operands must come from
producers at the same distance, or from a common one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from burn.dtypes import is_float
from burn_import.provenance.exporter_names import is_leftover
from burn_import.provenance.path_segments import Path
from burn_import.provenance.weight_owners import is_dotted, original
from burn_import.structure.layer_nouns import LayerNouns
from burn_import.structure.places import Places
from burn_import.structure.sequential import functions_after, sole_reader
from burn_import.structure.shared_classes import kind_of_constant, op_key
from burn_ir.graph import Graph, Node

#: Minimum number of layers of a block.
FEWEST_LAYERS = 2
#: Names of a convolution and its norm in a module of their own.
NORMALIZED = ("conv", "norm")
#: The fewest such modules: with fewer, their class is longer than the replaced code.
FEWEST_NORMALIZED = 8
#: Maximum number of distances that are tried, the most frequent first.
MOST_DISTANCES = 16


@dataclass(frozen=True)
class Repeat:
    """``count`` consecutive blocks of ``length`` nodes, from ``start`` on."""

    start: int
    length: int
    count: int

    @property
    def stop(self) -> int:
        """Index after the last block."""
        return self.start + self.length * self.count


def with_blocks(graph: Graph, node_paths: Places) -> Places:
    """Return ``node_paths`` with the repeated blocks of a flat graph as modules.

    Names of a flat graph tell layers, such as ``gconv1_2``, but no modules.
    """
    run = _Repeats(graph, node_paths)
    is_nameless = run.has_generic_names()
    if not run.is_flat() or not (is_nameless or run.has_numbered_names()):
        return node_paths
    layers, scopes = dict(node_paths.layers), dict(node_paths.scopes)
    for number, repeat in enumerate(run.select_blocks(), 1):
        name = "blocks" if number == 1 else f"blocks_{number}"
        blocks = run.blocks(repeat)
        names = run.layer_names(blocks)
        for block, nodes in enumerate(blocks):
            scope = (name, str(block))
            scopes.update((id(node), scope) for node in nodes)
            layer_nodes = [node for node in nodes if id(node) in layers]
            paths = [(*scope, layer_name) for layer_name in names]
            layers.update(zip(map(id, layer_nodes), paths, strict=True))
    rest = [node for node in graph.nodes if not scopes[id(node)]]
    for path, chain in run.normalized_convolutions(rest).items():
        scopes.update((id(node), path) for node in chain)
        for node, name in zip(chain, NORMALIZED, strict=False):
            layers[id(node)] = (*path, name)
    rest = [node for node in rest if not scopes[id(node)]]
    if is_nameless:
        layer_nodes = [node for node in rest if id(node) in layers]
        names = _number_repeated([run.nouns.noun(node) for node in layer_nodes])
        layers.update(
            (id(n), (name,)) for n, name in zip(layer_nodes, names, strict=True)
        )
    return Places(layers, scopes)


def _number_repeated(names: Sequence[str]) -> list[str]:
    """Return ``names``, numbered from the second layer of a name on."""
    numbers: Counter[str] = Counter()
    unique = []
    for name in names:
        numbers[name] += 1
        unique.append(f"{name}_{numbers[name]}" if numbers[name] > 1 else name)
    return unique


def _layers_last(graph: Graph, node_paths: Places) -> list[Node]:
    """Return the emitted nodes in order, those independent of layers first.

    Values that all blocks share may be computed within the first block.
    """
    after: set[str] = set()
    nodes: tuple[list[Node], list[Node]] = ([], [])
    for node in graph.nodes:
        results = [name for name in node.outputs if name is not None]
        if all(graph.types[name].known is not None for name in results):
            continue
        late = id(node) in node_paths.layers
        late = late or any(name in after for name in node.inputs if name)
        if late:
            after.update(results)
        nodes[late].append(node)
    return [*nodes[0], *nodes[1]]


@dataclass
class _Stretch:
    """A run of nodes, each equal to the node ``distance`` after it."""

    maker: Mapping[str, int]
    distance: int
    start: int = 0
    stop: int = 0
    #: Inputs of the first block, by the result of it that the second block reads
    #: instead.
    substitution: dict[str, str] = field(default_factory=dict)

    def do_correspond(self, position: int, one: str, other: str) -> bool:
        """Return whether two operands of a node and its counterpart correspond."""
        here, there = self.maker.get(one, -1), self.maker.get(other, -1)
        if there < 0:  # both are stored: their kinds are compared
            return here < 0
        if here >= 0 and there - here == self.distance:
            return True
        first = here < self.start <= there < self.start + self.distance
        inside = position < self.start + self.distance
        return first and inside and self.substitution.setdefault(one, other) == other


class _Repeats:
    def __init__(self, graph: Graph, node_paths: Places) -> None:
        self.graph = graph
        self.node_paths = node_paths
        self.nouns = LayerNouns(graph)
        self.nodes = _layers_last(graph, node_paths)
        self.maker = {
            name: position
            for position, node in enumerate(self.nodes)
            for name in node.outputs
            if name is not None
        }
        self.keys = [self.key(node) for node in self.nodes]
        are_layers = (id(node) in node_paths.layers for node in self.nodes)
        #: Number of layers before each position.
        self.layers = [0, *accumulate(map(int, are_layers))]
        self.crossing = self._live_counts()

    def is_flat(self) -> bool:
        """Return whether no node has a scope, and each layer runs once."""
        paths = list(self.node_paths.layers.values())
        flat = not any(self.node_paths.scopes.values())
        flat = flat and all(len(path) == 1 for path in paths)
        here = sum(id(node) in self.node_paths.layers for node in self.nodes)
        return flat and len(set(paths)) == len(paths) == here

    def has_generic_names(self) -> bool:
        """Return whether all layers are named by their operators."""
        layers = self.node_paths.layers
        here = [node for node in self.nodes if id(node) in layers]
        return all(
            re.fullmatch(rf"{self.nouns.noun(node)}(_\d+)?", layers[id(node)][0])
            for node in here
        )

    def has_numbered_names(self) -> bool:
        """Return whether the names are the author's, but no keys of modules."""
        if self.graph.constants.trained or any(n.scope for n in self.graph.nodes):
            return False
        names = {name for node in self.nodes for name in node.inputs if name}
        constants = self.graph.constants
        # Upgrades of operators store axes under dotted names.
        stored = [n for n in names if n in constants and is_float(constants[n].dtype)]
        return not any(is_dotted(original(self.graph, name)) for name in stored)

    def blocks(self, repeat: Repeat) -> list[list[Node]]:
        """Return the nodes of each block."""
        starts = range(repeat.start, repeat.stop, repeat.length)
        return [self.nodes[start : start + repeat.length] for start in starts]

    def layer_names(self, blocks: Sequence[Sequence[Node]]) -> list[str]:
        """Return the names of a block's layers, numbered within it.

        The authors' names ``gconv1_2`` and ``gconv1_4`` in two blocks are ``gconv1``.
        """
        layers = self.node_paths.layers
        rows = [[node for node in nodes if id(node) in layers] for nodes in blocks]
        names = []
        for nodes in zip(*rows, strict=True):
            words = {re.sub(r"_\d+(?=_|$)", "", layers[id(n)][0]) for n in nodes}
            names.append(words.pop() if len(words) == 1 else self.nouns.noun(nodes[0]))
        return _number_repeated(names)

    def normalized_convolutions(self, nodes: Sequence[Node]) -> dict[Path, list[Node]]:
        """Return the convolutions with a norm and a function, by their module's path.

        Only layers without an author's name are joined.
        """
        chains = dict[Path, list[Node]]()
        inside = set(map(id, nodes))
        for node in nodes:
            chain = self._chain(node)
            if chain and inside.issuperset(map(id, chain)):
                (name,) = self.node_paths.layers[id(node)]
                path = (re.sub(r"^.*?(?=_\d+$|$)", "conv_norm", name, count=1),)
                chains[(name,) if path in chains else path] = chain
        return chains if len(chains) >= FEWEST_NORMALIZED else {}

    def _chain(self, node: Node) -> list[Node]:
        """Return a convolution, its norm and the function after it, or []."""
        users, outputs = self.graph.users, set(self.graph.outputs)
        chain = [node, *sole_reader(node, users, outputs)]
        names = [self.node_paths.layers.get(id(one), ()) for one in chain]
        if [one.op.onnx for one in chain] != ["Conv", "BatchNormalization"]:
            return []
        if not all(len(name) == 1 and is_leftover(name[0]) for name in names):
            return []
        return chain + functions_after(chain[-1], users, outputs, 1)

    def key(self, node: Node) -> Hashable:
        """Return a key that is equal for equal nodes, whatever their producers."""
        layer = id(node) in self.node_paths.layers
        inputs = tuple(self.kind(name, layer) for name in node.inputs)
        return op_key(node.op), inputs, tuple(n is None for n in node.outputs)

    def kind(self, name: str | None, is_of_layer: bool) -> Hashable:
        """Return the emitted contents of a constant, else whether it is missing.

        The first block may read an input of the graph where others read a value.
        """
        if name is None or name in self.maker:
            return name is None
        if name in self.graph.constants:
            return kind_of_constant(self.graph, name, is_of_layer)
        contents = self.graph.types[name].known
        if contents is None:
            return False
        return contents.shape, str(contents.ravel().tolist())

    def select_blocks(self) -> list[Repeat]:
        """Return non-overlapping blocks in order, preferring those with most nodes."""
        candidates = [
            repeat
            for distance in self.distances()
            for stretch in self.stretches(distance)
            for repeat in self.cut_blocks(*stretch, distance)
        ]
        candidates.sort(key=lambda one: (one.start - one.stop, one.length, one.start))
        covered = bytearray(len(self.nodes))
        repeats: list[Repeat] = []
        for one in candidates:
            if not any(covered[one.start : one.stop]):
                covered[one.start : one.stop] = bytes([1]) * (one.stop - one.start)
                repeats.append(one)
        return sorted(repeats, key=lambda one: one.start)

    def distances(self) -> list[int]:
        """Return the distances between equal layers, the most frequent first."""
        last: dict[Hashable, int] = {}
        counts: Counter[int] = Counter()
        for position, node in enumerate(self.nodes):
            if id(node) in self.node_paths.layers:
                for size in (1, 2, 4):  # the first, second and fourth before it
                    before = last.get((self.keys[position], size))
                    if before is not None:
                        counts[position - before] += 1
                self._push(last, self.keys[position], position)
        return [distance for distance, _ in counts.most_common(MOST_DISTANCES)]

    @staticmethod
    def _push(last: dict[Hashable, int], key: Hashable, position: int) -> None:
        for size in (4, 3, 2):
            if (key, size - 1) in last:
                last[key, size] = last[key, size - 1]
        last[key, 1] = position

    def stretches(self, distance: int) -> Iterator[tuple[int, int]]:
        """Yield (start, stop) of nodes that equal those at ``distance`` after them."""
        stretch = _Stretch(self.maker, distance)
        last = len(self.nodes) - distance
        for position in range(last + 1):
            fits = position < last and self.extends_stretch(position, stretch)
            if not fits:
                if stretch.stop - stretch.start >= distance:
                    yield stretch.start, stretch.stop
                stretch = _Stretch(self.maker, distance, position, position)
                fits = position < last and self.extends_stretch(position, stretch)
            stretch.stop = position + 1 if fits else stretch.stop

    def extends_stretch(self, position: int, stretch: _Stretch) -> bool:
        """Return whether a node extends ``stretch``."""
        other = position + stretch.distance
        if stretch.stop != position or self.keys[position] != self.keys[other]:
            return False
        one, two = self.nodes[position].inputs, self.nodes[other].inputs
        return all(
            a == b or a is None or b is None or stretch.do_correspond(position, a, b)
            for a, b in zip(one, two, strict=True)
        )

    def cut_blocks(self, start: int, stop: int, distance: int) -> Iterator[Repeat]:
        """Yield the blocks of a stretch, cut where the fewest values cross.

        Of equal cuts, the first that is before a layer is taken: an activation ends
        the block of its layer.
        """
        repeats = []
        for shift in range(distance):
            first = start + shift
            count = (stop + distance - first) // distance
            layers = self.layers[first + distance] - self.layers[first]
            if count > 1 and layers >= FEWEST_LAYERS:
                crossing = self.crossing[first + distance]
                follows = id(self.nodes[first]) not in self.node_paths.layers
                key = (crossing, -count, follows, shift)
                repeats.append((key, Repeat(first, distance, count)))
        if repeats:
            yield min(repeats, key=lambda one: one[0])[1]

    def _live_counts(self) -> list[int]:
        """Return the number of live values at each position."""
        changes = [0] * (len(self.nodes) + 2)
        last: dict[str, int] = {}
        for position, node in enumerate(self.nodes):
            last.update((n, position) for n in node.inputs if n in self.maker and n)
        for name, position in last.items():
            changes[self.maker[name] + 1] += 1
            changes[position + 1] -= 1
        return list(accumulate(changes))
