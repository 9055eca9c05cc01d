"""Ordering of a module's nodes so that each submodule is one call."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from burn_import.provenance.path_segments import Path
from burn_ir.graph import Node


@dataclass(eq=False)
class Group:
    """Nodes that run together: a submodule (``key`` is its path), or one node."""

    key: Path | None
    nodes: list[Node]


def arrange(
    groups: list[Group],
    order: Mapping[int, int],
    split: Callable[[Group], list[Group]],
) -> list[Group]:
    """Return ``groups`` in an executable order, close to that of the file.

    A submodule that cannot run as one call (a node outside of it is needed in
    between) is split into its nodes and its submodules, which the enclosing module
    then runs.
    """
    while True:
        done, stuck = _sort(groups, order)
        if not stuck:
            return done
        broken = _largest_module(stuck)
        groups = [g for g in groups if g is not broken]
        groups += split(broken)


def _largest_module(stuck: list[Group]) -> Group:
    return max((g for g in stuck if g.key is not None), key=lambda g: len(g.nodes))


def _sort(
    groups: list[Group], order: Mapping[int, int]
) -> tuple[list[Group], list[Group]]:
    """Return the groups in topological order, and those in cycles."""
    maker = {
        name: index
        for index, group in enumerate(groups)
        for node in group.nodes
        for name in node.outputs
        if name is not None
    }
    needs = [
        {maker[n] for node in g.nodes for n in node.inputs if n in maker} - {index}
        for index, g in enumerate(groups)
    ]
    users: list[list[int]] = [[] for _ in groups]
    for index, sources in enumerate(needs):
        for source in sources:
            users[source].append(index)
    waiting = [len(sources) for sources in needs]
    first = [min(order[id(node)] for node in group.nodes) for group in groups]
    ready = [(first[i], i) for i, count in enumerate(waiting) if count == 0]
    heapq.heapify(ready)
    done: list[int] = []
    while ready:
        _, index = heapq.heappop(ready)
        done.append(index)
        for user in users[index]:
            waiting[user] -= 1
            if waiting[user] == 0:
                heapq.heappush(ready, (first[user], user))
    placed = set(done)
    stuck = [group for index, group in enumerate(groups) if index not in placed]
    return [groups[index] for index in done], stuck
