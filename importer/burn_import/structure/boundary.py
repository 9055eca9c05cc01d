"""Inputs and outputs of a module."""

from collections.abc import Iterator, Mapping, Sequence

from burn_import.tracing.extents import bindable
from burn_ir.dim import Dim, Poly
from burn_ir.graph import Graph, Node
from burn_ir.types import Type


def boundary(
    graph: Graph,
    nodes: Sequence[Node],
    users: Mapping[str, Sequence[Node]],
    around: Sequence[str] = (),
) -> tuple[list[str], list[str]]:
    """Return the values that ``nodes`` read from outside, and those read outside.

    Integers that follow from the dimensions of the inputs are recomputed inside. Where
    they follow from the dimensions of ``around``, the inputs of the enclosing module,
    an input of it takes their place.
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
    return _without_inferable(graph, list(read), around), outputs


def _without_inferable(
    graph: Graph, read: list[str], around: Sequence[str]
) -> list[str]:
    """Return ``read`` without values that the others' dimensions determine.

    Tensors of ``around`` with further dimensions are appended.
    """
    flows = [name for name in read if _known_dims(graph.types[name]) is None]
    needed = []
    for name in read:
        dims = _known_dims(graph.types[name])
        sources = None if dims is None else _sources(graph, dims, flows, around)
        if sources is None:
            needed.append(name)
        else:
            flows += sources
    return [*needed, *(name for name in flows if name not in needed)]


def _sources(
    graph: Graph, dims: list[Dim], flows: list[str], around: Sequence[str]
) -> list[str] | None:
    """Return tensors of ``around`` that have the dimensions that ``flows`` lack.

    None if these have other dimensions only.
    """
    sources: list[str] = []
    extents = {dim for name in flows for dim in _symbolic_dims(graph.types[name])}
    for name in around:
        missing = [dim for dim in dims if not bindable(dim, extents)]
        own = set(_symbolic_dims(graph.types[name]))
        is_plain = _known_dims(graph.types[name]) is None and name not in flows
        if is_plain and any(bindable(dim, extents | own) for dim in missing):
            sources.append(name)
            extents |= own
    return sources if all(bindable(dim, extents) for dim in dims) else None


def _symbolic_dims(value_type: Type) -> Iterator[Poly]:
    return (dim for dim in value_type.shape or () if isinstance(dim, Poly))


def _known_dims(value_type: Type) -> list[Dim] | None:
    """Return the dimensions in the contents of a value, or None if unknown."""
    if value_type.known is None:
        return None
    if value_type.known.dtype != object:
        return []
    return [d for d in value_type.known.ravel().tolist() if isinstance(d, Poly)]
