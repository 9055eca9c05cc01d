"""Regions of a graph between a value that several branches read and their join.

A residual block, a squeeze-and-excite gate and an inception block are such regions: all
paths from the value to the join lie inside, and nothing outside reads another value of
the region.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from burn_ir.graph import Graph, Node

#: The most nodes of a region that is looked at.
MOST_NODES = 200
#: The position of the graph's inputs, before all nodes.
INPUT = -1
#: The position of the reader of an output of the graph.
OUTPUT = 1 << 62


@dataclass(frozen=True)
class Region:
    """Positions of the nodes between ``fork`` (outside) and ``join`` (the last one)."""

    fork: int
    join: int
    members: tuple[int, ...]


class Regions:
    """The regions of ``nodes``, which are in topological order.

    Operands that are neither inputs of the graph nor computed by ``nodes`` are ignored:
    weights, and values that do not depend on a layer.
    """

    def __init__(self, graph: Graph, nodes: Sequence[Node]) -> None:
        self.graph = graph
        self.nodes = nodes
        self.maker = {
            name: position
            for position, node in enumerate(nodes)
            for name in node.outputs
            if name is not None
        }
        self.maker.update((name, INPUT) for name in graph.inputs)
        #: The positions of the nodes that compute a node's operands.
        self.before = [self._operands(node) for node in nodes]
        #: The positions of the nodes that read a node's results.
        self.after = self._readers()
        self.dominator = self._dominators()

    def __iter__(self) -> Iterator[Region]:
        """Yield every region of at most ``MOST_NODES`` nodes, by its join."""
        for join, operands in enumerate(self.before):
            if len(operands) > 1:
                region = self._region(join)
                if region is not None:
                    yield region

    def is_closed(self, members: Sequence[int]) -> bool:
        """Return whether only the last member's result is read outside."""
        inside = set(members)
        return all(inside.issuperset(self.after[one]) for one in members[:-1])

    def sole_reader(self, position: int) -> int | None:
        """Return the only node that reads the results of a node, if there is one."""
        readers = self.after[position]
        return readers[0] if len(readers) == 1 and readers[0] < OUTPUT else None

    def runs(self, covered: Collection[int]) -> Iterator[tuple[int, ...]]:
        """Yield the longest chains of nodes that are not in ``covered``.

        Each node but the last is read by the next one alone, which reads nothing else.
        """
        inner = set[int]()
        for start in range(len(self.nodes)):
            if start not in inner and self._may_continue(start, covered):
                run = [start]
                while True:
                    reader = self.sole_reader(run[-1])
                    if reader is None or not self._may_continue(reader, covered):
                        break
                    run.append(reader)
                inner.update(run)
                yield tuple(run)

    def _may_continue(self, position: int, covered: Collection[int]) -> bool:
        return position not in covered and len(self.before[position]) == 1

    def _readers(self) -> list[list[int]]:
        """Return the nodes that read each node; ``OUTPUT`` for others than ours."""
        position = {id(node): number for number, node in enumerate(self.nodes)}
        users, outputs = self.graph.users, set(self.graph.outputs)
        after = []
        for node in self.nodes:
            names = [name for name in node.outputs if name is not None]
            readers = {
                position.get(id(user), OUTPUT)
                for name in names
                for user in users.get(name, ())
            }
            readers |= {OUTPUT} if outputs.intersection(names) else set()
            after.append(sorted(readers))
        return after

    def _operands(self, node: Node) -> list[int]:
        return sorted(
            {self.maker[n] for n in node.inputs if n is not None and n in self.maker}
        )

    def _dominators(self) -> list[int]:
        """Return the last node that all paths to each node pass."""
        tree = DominatorTree()
        for operands in self.before:
            tree.append(reduce(tree.common, operands) if operands else INPUT)
        return tree.parents[1:]

    def _inputs(self, members: Sequence[int]) -> set[str]:
        """Return the inputs of the graph that nodes read."""
        names = (name for one in members for name in self.nodes[one].inputs)
        return {name for name in names if name and self.maker.get(name) == INPUT}

    def _region(self, join: int) -> Region | None:
        fork = self.dominator[join]
        members, waiting = {join}, [join]
        while waiting and len(members) <= MOST_NODES:
            new = set(self.before[waiting.pop()]) - members - {fork}
            members |= new
            waiting += new
        ordered = tuple(sorted(members))
        if waiting or not self.is_closed(ordered):
            return None
        if fork == INPUT and len(self._inputs(ordered)) > 1:
            return None
        return Region(fork, join, ordered)


class DominatorTree:
    """The dominators of nodes, with links that halve the way to the root.

    A link leads to an ancestor whose depth depends on the node's depth alone (skew
    binary numbers), so that two nodes find their common ancestor in logarithmic time.
    """

    def __init__(self) -> None:
        #: By position + 1, since the root is ``INPUT``, -1.
        self.parents, self.links, self.depths = [INPUT], [INPUT], [0]

    def append(self, parent: int) -> None:
        """Add the next node below ``parent``."""
        link = self.links[parent + 1]
        further = self.links[link + 1]
        depths = [self.depths[one + 1] for one in (parent, link, further)]
        is_even = depths[0] - depths[1] == depths[1] - depths[2]
        self.parents.append(parent)
        self.links.append(further if is_even else parent)
        self.depths.append(depths[0] + 1)

    def common(self, one: int, other: int) -> int:
        """Return the nearest common ancestor of two nodes, which may be one of them."""
        depths, links = self.depths, self.links
        if depths[one + 1] < depths[other + 1]:
            one, other = other, one
        while depths[one + 1] > depths[other + 1]:
            is_far = depths[links[one + 1] + 1] < depths[other + 1]
            one = self.parents[one + 1] if is_far else links[one + 1]
        while one != other:
            step = links if links[one + 1] != links[other + 1] else self.parents
            one, other = step[one + 1], step[other + 1]
        return one
