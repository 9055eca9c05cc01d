"""Regions of a graph between a value that several branches read and their join.

A residual block, a squeeze-and-excite gate and an inception block are such regions: all
paths from the value to the join lie inside, and nothing outside reads another value of
the region.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

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
        dominator: list[int] = []
        for operands in self.before:
            common = operands[-1] if operands else INPUT
            for other in operands:
                while common != other:
                    if common > other:
                        common = dominator[common]
                    else:
                        other = dominator[other]
            dominator.append(common)
        return dominator

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
