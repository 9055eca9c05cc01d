"""What flows into a module and out of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from burn_import.tracing.extents import bindable
from burn_ir.dim import Dim, Poly
from burn_ir.graph import Graph, Node
from burn_ir.types import Type


def boundary(
    graph: Graph, nodes: Sequence[Node], users: Mapping[str, Sequence[Node]]
) -> tuple[list[str], list[str]]:
    """The values that ``nodes`` read from outside, and those read outside of them.

    Integers that follow from the extents of the inputs are computed inside.
    """
    made = {name: None for node in nodes for name in node.outputs if name is not None}
    read = {
        name: None
        for node in nodes
        for name in node.inputs
        if name is not None and name not in made and name not in graph.constants
    }
    inside = set(map(id, nodes))
    outside = set(graph.outputs)
    outputs = [
        name
        for name in made
        if name in outside
        or any(id(user) not in inside for user in users.get(name, ()))
    ]
    return _needed(graph, list(read)), outputs


def _needed(graph: Graph, read: list[str]) -> list[str]:
    """``read`` without what can be computed from the extents of the others."""
    flows = [name for name in read if _known_dims(graph.types[name]) is None]
    extents = {
        dim
        for name in flows
        for dim in (graph.types[name].shape or ())
        if isinstance(dim, Poly)
    }
    needed = []
    for name in read:
        dims = _known_dims(graph.types[name])
        if dims is None or not all(bindable(dim, extents) for dim in dims):
            needed.append(name)
    return needed


def _known_dims(known: Type) -> list[Dim] | None:
    """The dimensions in the contents of a value; None if they are not known."""
    if known.known is None:
        return None
    if known.known.dtype != object:
        return []
    return [d for d in known.known.ravel().tolist() if isinstance(d, Poly)]
