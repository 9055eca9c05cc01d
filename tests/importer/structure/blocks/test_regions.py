"""Regions of graphs: their dominators, also of graphs with many nodes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from burn_import.structure.blocks.regions import INPUT, DominatorTree, Regions
from burn_ir.graph import Constants, Graph, Node
from burn_ir.ops.elementwise import Sum


def graph_of(operands: Sequence[Sequence[int]]) -> Graph:
    """Return a graph of sums of earlier nodes, by their positions."""
    nodes = [
        Node(
            Sum(),
            tuple("x" if one == INPUT else f"v{one}" for one in before),
            (f"v{number}",),
            f"n{number}",
        )
        for number, before in enumerate(operands)
    ]
    outputs = (f"v{len(nodes) - 1}",)
    return Graph("net", ("x",), outputs, tuple(nodes), {}, Constants())


def dominators(operands: Sequence[Sequence[int]]) -> list[int]:
    graph = graph_of(operands)
    return Regions(graph, graph.nodes).dominator


def nearest_common(operands: Sequence[Sequence[int]]) -> list[int]:
    """Return the dominators by sets of all nodes that every path passes."""
    passed = {INPUT: {INPUT}}
    for number, before in enumerate(operands):
        shared = set.intersection(*(passed[one] for one in before))
        passed[number] = shared | {number}
    return [max(passed[number] - {number}) for number in range(len(operands))]


@pytest.mark.parametrize("seed", range(40))
def test_dominators_are_on_every_path(seed: int) -> None:
    rng = np.random.default_rng(seed)
    operands = []
    for number in range(60):
        low = INPUT if seed % 2 else max(INPUT, number - 6)
        count = int(rng.integers(1, 4))
        operands.append(sorted({int(n) for n in rng.integers(low, number, count)}))
    assert dominators(operands) == nearest_common(operands)


def test_joins_of_long_branches_take_few_steps() -> None:
    """Two branches of 7000 nodes have 6000 joins, which all lead back to the input."""
    length, joins = 7000, 6000
    links = Counted([INPUT])
    tree = DominatorTree()
    tree.links = links
    for number in range(2 * length):
        tree.append(number - 1 if number % length else INPUT)
    for _ in range(joins):
        assert tree.common(length - 1, 2 * length - 1) == INPUT
    assert links.reads < 100 * (2 * length + joins)


class Counted(list[int]):
    """A list that counts how often its elements are read."""

    reads = 0

    def __getitem__(self, index: Any) -> Any:
        self.reads += 1
        return super().__getitem__(index)
