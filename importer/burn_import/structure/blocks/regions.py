"""Regions of a graph between a value that several branches read and their join.

A residual block, a squeeze-and-excite gate and an inception block are such regions: all
paths from the value to the join lie inside, and nothing outside reads another value of
the region.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from burn_ir.graph import Graph, Node

#: The most nodes of a region that is looked at.
MOST_NODES = 200
#: The position of the values that no node computes.
OUTSIDE = -1


@dataclass(frozen=True)
class Region:
    """Positions of the nodes between ``fork`` (outside) and ``join`` (the last one)."""

    fork: int
    join: int
    members: tuple[int, ...]

    @property
    def main_branch(self) -> tuple[int, ...]:
        """The positions without the join, if the other branch is the identity."""
        return self.members[:-1]


class Regions:
    """The regions of ``nodes``, which are in topological order.

    Operands that no node in ``nodes`` computes are ignored: weights, and values that
    do not depend on a layer.
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
        self.before = [self._operands(node) for node in nodes]
        self.dominator = self._dominators()

    def __iter__(self) -> Iterator[Region]:
        """Yield every region of at most ``MOST_NODES`` nodes, by its join."""
        for join, operands in enumerate(self.before):
            if len(operands) > 1 and self.dominator[join] != OUTSIDE:
                region = self._region(join)
                if region is not None:
                    yield region

    def is_closed(self, members: Sequence[int]) -> bool:
        """Return whether only the last member's result is read outside."""
        inside = {id(self.nodes[position]) for position in members}
        results = (
            name
            for position in members[:-1]
            for name in self.nodes[position].outputs
            if name is not None
        )
        users, outputs = self.graph.users, set(self.graph.outputs)
        return all(
            name not in outputs
            and all(id(user) in inside for user in users.get(name, ()))
            for name in results
        )

    def _operands(self, node: Node) -> list[int]:
        makers = (self.maker.get(name or "", OUTSIDE) for name in node.inputs)
        return sorted({position for position in makers if position != OUTSIDE})

    def _dominators(self) -> list[int]:
        """Return the last node that all paths to each node pass."""
        dominator: list[int] = []
        for operands in self.before:
            common = operands[-1] if operands else OUTSIDE
            for other in operands:
                while common != other:
                    if common > other:
                        common = dominator[common]
                    else:
                        other = dominator[other]
            dominator.append(common)
        return dominator

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
        return Region(fork, join, ordered)
