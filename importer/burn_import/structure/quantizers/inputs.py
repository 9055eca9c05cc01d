"""Modules of quantizers, if not all modules of a kind quantize their results.

A quantizer normally runs in the module whose result it rounds. If the result of the
last module in a list stays a float, that module would differ from the others; all of
them are equal if each quantizes its input. Others with the same name are equal if the
module around them quantizes their results.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from burn_import.provenance.path_segments import Path, common
from burn_ir.graph import Graph, Node


def input_scopes(
    graph: Graph,
    quantizers: Sequence[Node],
    scopes: Mapping[int, Path],
    lists: Collection[Path],
) -> dict[int, Path]:
    """Return the scopes of quantizers that run in the module of a list they enter.

    ``scopes`` are those of all nodes, and ``lists`` run no code. A list is considered
    if a quantized value enters every one of its modules and none leaves the last.
    """
    readers = {
        id(node): _reader_scope(graph, node, scopes, lists) for node in quantizers
    }
    entered: dict[Path, dict[int, list[Node]]] = defaultdict(lambda: defaultdict(list))
    left: dict[Path, set[int]] = defaultdict(set)
    for node in quantizers:
        own, inner = scopes[id(node)], readers[id(node)]
        for prefix in _items(inner):
            if own[: len(prefix)] != prefix:
                entered[prefix[:-1]][int(prefix[-1])].append(node)
        for prefix in _items(own):
            if inner[: len(prefix)] != prefix:
                left[prefix[:-1]].add(int(prefix[-1]))
    sizes: dict[Path, int] = defaultdict(int)
    for path in scopes.values():
        for prefix in _items(path):
            size = int(prefix[-1]) + 1
            sizes[prefix[:-1]] = max(sizes[prefix[:-1]], size)
    moved: dict[int, Path] = {}
    for path, items in entered.items():
        size = sizes[path]
        if size > 1 and len(items) == size and size - 1 not in left[path]:
            nodes = [node for group in items.values() for node in group]
            moved.update((id(node), readers[id(node)]) for node in nodes)
    return moved


def outer_scopes(
    graph: Graph,
    quantizers: Sequence[Node],
    scopes: Mapping[int, Path],
    lists: Collection[Path],
) -> dict[int, Path]:
    """Return the scopes of quantizers that run around a module in place of in it.

    They round results of modules of which others with the same name return floats.
    """
    moved: dict[int, Path] = {}
    modules = {path[:n] for path in scopes.values() for n in range(1, len(path) + 1)}
    leaving: dict[Path, list[Node]] = defaultdict(list)
    for node in quantizers:
        own, inner = scopes[id(node)], _reader_scope(graph, node, scopes, lists)
        if own and inner[: len(own)] != own:
            leaving[own].append(node)
    for own, nodes in leaving.items():
        namesakes = {path for path in modules if path[-1] == own[-1]}
        if own[-1].isdigit() or namesakes <= leaving.keys():
            continue
        for node in nodes:
            around = common([own, _reader_scope(graph, node, scopes, lists)])
            if not any(segment.isdigit() for segment in own[len(around) :]):
                moved[id(node)] = around
    return moved


def _reader_scope(
    graph: Graph, node: Node, scopes: Mapping[int, Path], lists: Collection[Path]
) -> Path:
    """Return the common scope of the readers of a result; () if it is returned."""
    readers = graph.users.get(node.output, ())
    if node.output in graph.results or not readers:
        return ()
    scope = common([scopes[id(reader)] for reader in readers])
    while scope in lists:
        scope = scope[:-1]
    return scope


def _items(path: Path) -> list[Path]:
    """Return the prefixes of a path that are modules in a list."""
    return [path[: n + 1] for n, segment in enumerate(path) if n and segment.isdigit()]
