"""Detection of equal consecutive blocks in a graph without names of modules.

Each node is compared with the node at a fixed distance after it: both must
have the same operator and weights of the same shapes, and their operands must come from
producers at the same distance, or from a common one.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from burn_import.structure.places import Places
from burn_import.structure.shared_classes import kind_of_constant, op_key
from burn_ir.graph import Graph, Node

#: Minimum number of layers of a block.
FEWEST_LAYERS = 2
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


def layers_last(graph: Graph, node_paths: Places) -> list[Node]:
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


class Repeats:
    """The equal consecutive blocks among ``nodes``, in topological order."""

    def __init__(self, graph: Graph, nodes: Sequence[Node], node_paths: Places) -> None:
        self.graph = graph
        self.node_paths = node_paths
        self.nodes = nodes
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

    def blocks(self, repeat: Repeat) -> list[Sequence[Node]]:
        """Return the nodes of each block."""
        starts = range(repeat.start, repeat.stop, repeat.length)
        return [self.nodes[start : start + repeat.length] for start in starts]

    def key(self, node: Node) -> Hashable:
        """Return a key that is equal for equal nodes, whatever their producers."""
        layer = id(node) in self.node_paths.layers
        inputs = tuple(self.kind(name, layer) for name in node.inputs)
        return op_key(node.op), layer, inputs, tuple(n is None for n in node.outputs)

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

    def select_blocks(self, free: Sequence[bool]) -> list[Repeat]:
        """Return non-overlapping blocks in order, preferring those with most nodes.

        ``free`` tells for each node whether it may be in a block.
        """
        candidates = [
            repeat
            for distance in self.distances()
            for stretch in self.stretches(distance)
            for repeat in self.cut_blocks(*stretch, distance)
        ]
        candidates.sort(key=lambda one: (one.start - one.stop, one.length, one.start))
        covered = bytearray(not one for one in free)
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
