"""Removal of wrappers: root modules that only call one submodule.

PyTorch's users write a class around a model to export it, whose ``forward`` calls
``self.model`` and selects results.
"""

from __future__ import annotations

from dataclasses import replace

from burn_import.provenance.path_segments import ROOT, Path, clean
from burn_import.provenance.weight_owners import is_key, original
from burn_import.structure.module_tree import ModuleNode, SubmoduleCall, calls_of
from burn_ir.graph import Graph, Node, nested_nodes
from burn_ir.types import Type


def without_wrapper(root: ModuleNode) -> ModuleNode:
    """Return the module that ``root`` consists of as the root, else ``root``.

    ``graph.constants.prefix`` becomes its path, with which keys begin.
    """
    while (inner := _only_module(root)) is not None:
        constants = root.graph.constants
        constants.prefix = (*constants.prefix, *inner.path)
        _move_up(inner, len(inner.path), set())
        root = replace(
            inner,
            class_name=root.class_name,
            items=[*root.items[:-1], *inner.items],
            inputs=root.inputs,
            outputs=root.outputs,
            has_exporter_name=False,
        )
    return root


def _only_module(root: ModuleNode) -> ModuleNode | None:
    """Return the module whose call is all that ``root`` does, if there is one."""
    call = root.items[-1] if root.items else None
    if not isinstance(call, SubmoduleCall):
        return None
    before = root.items[:-1]
    if not all(isinstance(n, Node) and _is_extent(n, root.graph) for n in before):
        return None
    inner = call.part
    if inner.graph is not root.graph or inner.sequence or inner.function:
        return None
    if inner.path[0] == ROOT or any(map(str.isdigit, inner.path)):
        return None  # a list, or a member of one
    own = (root.states, root.kept, root.reached, root.lent_arrays)
    if any(own) or any(inner.lent_arrays.values()):  # () stands for no reader
        return None
    is_whole = {*inner.inputs} <= {*root.inputs} and {*root.outputs} <= {*inner.outputs}
    return inner if is_whole and _has_all_keys(inner) else None


def _has_all_keys(part: ModuleNode) -> bool:
    """Return whether the keys of all arrays that ``part`` reads begin with its path."""
    graph = part.graph
    prefix = (*graph.constants.prefix, *part.path)
    nodes = (one for node in graph.nodes for one in nested_nodes(node))
    read = {name for node in nodes for name in node.inputs if name}
    stored = read & graph.constants.keys()
    names = {original(graph, name) for name in stored} - graph.constants.literals
    trained = graph.constants.trained
    keys = {n for n in names if n in trained or is_key(graph.producer, n)}
    paths = [clean(key.split(".")) for key in keys]
    return all(path[:-1][: len(prefix)] == prefix for path in paths)


def _is_extent(node: Node, graph: Graph) -> bool:
    """Return whether ``node`` computes shapes, which each module does itself."""
    types = [graph.type(name) for name in node.outputs]
    return all(isinstance(each, Type) and each.known is not None for each in types)


def _move_up(part: ModuleNode, depth: int, moved: set[int]) -> None:
    """Remove the first ``depth`` segments from the paths of a module and its parts."""
    if id(part) in moved:
        return
    moved.add(id(part))
    part.path = part.path[depth:]
    for item in part.items:
        for call in calls_of(item):
            _move_up(call.part, depth, moved)


def without_prefix(path: Path, prefix: Path) -> Path:
    """Return ``path`` without the path of a removed wrapper's module."""
    return path[len(prefix) :] if path[:-1][: len(prefix)] == prefix else path
