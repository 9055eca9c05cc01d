"""Inputs and outputs of a module."""

from collections.abc import Mapping, Sequence

from burn_import.tracing.extents import bindable
from burn_ir.dim import Dim, Poly
from burn_ir.graph import Graph, Node
from burn_ir.types import Type


def boundary(
    graph: Graph, nodes: Sequence[Node], users: Mapping[str, Sequence[Node]]
) -> tuple[list[str], list[str]]:
    """Return the values that ``nodes`` read from outside, and those read outside.

    Integers that follow from the dimensions of the inputs are recomputed inside.
    """
    computed = {
        name: None for node in nodes for name in node.outputs if name is not None
    }
    read = {
        name: None
        for node in nodes
        for name in node.inputs
        if name is not None and name not in computed and name not in graph.constants
    }
    inside = set(map(id, nodes))
    outside = set(graph.outputs)
    outputs = [
        name
        for name in computed
        if name in outside
        or any(id(user) not in inside for user in users.get(name, ()))
    ]
    return _without_inferable(graph, list(read)), outputs


def _without_inferable(graph: Graph, read: list[str]) -> list[str]:
    """Return ``read`` without values that the others' dimensions determine."""
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


def _known_dims(value_type: Type) -> list[Dim] | None:
    """Return the dimensions in the contents of a value, or None if unknown."""
    if value_type.known is None:
        return None
    if value_type.known.dtype != object:
        return []
    return [d for d in value_type.known.ravel().tolist() if isinstance(d, Poly)]
