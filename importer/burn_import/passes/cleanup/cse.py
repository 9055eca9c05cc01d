"""Merges nodes that compute the same from the same."""

from __future__ import annotations

import struct
from collections.abc import Hashable
from typing import Any

import numpy as np

from burn_import.rewriting.graphs import rename
from burn_ir.graph import Graph, Node


def merge(graph: Graph) -> Graph:
    """``graph`` with one node for equal operators, attributes and operands.

    Random operators, layers and nodes with bodies stay as they are, and so does a node
    that makes a graph output. A node is only merged into one of its own scope or of a
    scope around it: modules that look alike stay alike. Constants of equal content are
    different constants: that they are tied is for the model to say.
    """
    aliases: dict[str, str] = {}
    seen: dict[Hashable, Node] = {}
    outputs, kept = set(graph.outputs), []
    for node in graph.nodes:
        key = None if _stays(node, graph) else _key(node, aliases)
        twin = None if key is None else _twin(key, node, seen)
        if twin is None or not outputs.isdisjoint(node.outputs):
            kept.append(node)
            if key is not None:
                seen.setdefault((key, node.scope), node)
            continue
        for name, other in zip(node.outputs, twin.outputs, strict=True):
            if name is not None and other is not None:
                aliases[name] = other
    if not aliases:
        return graph
    return rename(graph.with_nodes(kept), aliases)


def _stays(node: Node, graph: Graph) -> bool:
    if not node.op.deterministic or node.op.bodies():
        return True
    return node.op.layer(*(graph.type(name) for name in node.inputs)) is not None


def _twin(key: Hashable, node: Node, seen: dict[Hashable, Node]) -> Node | None:
    """An equal node in the scope of ``node`` or around it, the innermost one."""
    for length in range(len(node.scope), -1, -1):
        twin = seen.get((key, node.scope[:length]))
        if twin is not None:
            return twin
    return None


def _key(node: Node, aliases: dict[str, str]) -> Hashable:
    """What equal nodes have in common; aliases lead to kept nodes directly."""
    inputs = tuple(None if n is None else aliases.get(n, n) for n in node.inputs)
    asked = tuple(name is not None for name in node.outputs)
    attrs = tuple((k, frozen(v)) for k, v in sorted(node.op.attrs().items()))
    return (type(node.op), attrs, inputs, asked)


def frozen(value: Any) -> Hashable:
    """A key that two attributes share only if they are the same to the bit."""
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return (value.shape, tuple(map(frozen, value.ravel().tolist())))
        return (value.dtype.str, str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, float):
        return (float, struct.pack("<d", value))
    if isinstance(value, list | tuple):
        return (tuple, tuple(map(frozen, value)))
    return (type(value), value)
