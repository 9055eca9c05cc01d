"""Topological order of the nodes of an untyped graph."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable

from burn_ir.raw import RawGraph, RawNode


def sort_nodes(
    graph: RawGraph, report: Callable[[RawNode, str], None]
) -> list[RawNode]:
    """Return the nodes in topological order, otherwise in the order of the file.

    Cycles and names with two producers are passed to ``report``.
    """
    producer: dict[str, int] = {}
    for index, node in enumerate(graph.nodes):
        for name in node.outputs:
            if name is not None and (
                name in producer or name in graph.inputs or name in graph.constants
            ):
                report(node, f"expected one producer of {name!r}, found two")
            elif name is not None:
                producer[name] = index
    reads = [node_reads(node) for node in graph.nodes]
    if all(
        producer.get(name, -1) < index
        for index, names in enumerate(reads)
        for name in names
    ):
        return list(graph.nodes)  # already sorted, as the specification requires
    needs = [{producer[name] for name in names if name in producer} for names in reads]
    order = _kahn(needs)
    if len(order) < len(graph.nodes):
        sorted_ones = set(order)
        stuck = next(i for i in range(len(needs)) if i not in sorted_ones)
        message = "expected a graph without cycles; this node needs its own result"
        report(graph.nodes[stuck], message)
    return [graph.nodes[index] for index in order]


def _kahn(needs: list[set[int]]) -> list[int]:
    users: list[list[int]] = [[] for _ in needs]
    waiting = [len(sources) for sources in needs]
    for index, sources in enumerate(needs):
        for source in sources:
            users[source].append(index)
    ready = [index for index, count in enumerate(waiting) if count == 0]
    order = []
    while ready:
        index = heapq.heappop(ready)
        order.append(index)
        for user in users[index]:
            waiting[user] -= 1
            if waiting[user] == 0:
                heapq.heappush(ready, user)
    return order


def node_reads(node: RawNode) -> Iterable[str]:
    """Return the names that a node reads, including captures of its subgraphs."""
    names = filter(None, node.inputs)
    if not node.attrs:
        return tuple(names)
    reads = set(names)
    for value in node.attrs.values():
        if isinstance(value, RawGraph):
            reads |= free_names(value)
    return reads


def free_names(graph: RawGraph) -> set[str]:
    """Return the names that a subgraph reads and does not define."""
    bound = {*graph.inputs, *graph.constants}
    bound |= {name for node in graph.nodes for name in node.outputs if name}
    used = set(graph.outputs)
    for node in graph.nodes:
        used |= set(node_reads(node))
    return used - bound
