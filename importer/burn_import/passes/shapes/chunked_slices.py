"""Writes slices that are all the equal parts of an axis as one split."""

from collections import defaultdict
from dataclasses import replace
from typing import NamedTuple

from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.split import Split
from burn_ir.ops.support import known_ints


class Source(NamedTuple):
    """The operand of slices, their axis, and the module that they are in."""

    name: str
    axis: int
    scope: tuple[str, ...]


class Part(NamedTuple):
    """The begin and end of a slice."""

    start: int
    end: int
    node: Node


def chunked_slices(graph: Graph) -> Graph:
    """Return ``graph`` with ``Split`` for slices into equal parts.

    The slices are along one axis of known extent, with step 1, and each element is in
    one of them. Exporters write ``torch.chunk`` so, with the extent as the last end:
    slices to an open end (``x[:, 8:]``) are the author's and stay, as do those of
    weights.
    """
    if "Slice" not in graph.operators:
        return graph
    flow = Dataflow(graph)
    groups: dict[Source, list[Part]] = defaultdict(list)
    for node in graph.nodes:
        if flow.made_by(node.outputs[0], "Slice") is node:
            _add_part(flow, node, groups)
    splits: dict[int, Node] = {}
    absorbed: set[int] = set()
    for source, parts in groups.items():
        extent = flow.extents(source.name)[source.axis]
        if _are_equal(parts, extent):
            splits[id(parts[0].node)] = _split(source, parts)
            absorbed.update(id(part.node) for part in parts[1:])
    nodes = [splits.get(id(n), n) for n in graph.nodes if id(n) not in absorbed]
    return with_nodes(graph, nodes)


def _add_part(flow: Dataflow, node: Node, groups: dict[Source, list[Part]]) -> None:
    """Add a slice along one axis with known bounds to its group."""
    name, t = node.inputs[0], flow.graph.type(node.inputs[0])
    bounds = [known_ints(flow.graph.type(n)) for n in (*node.inputs, None, None)[1:5]]
    starts, ends, axes, steps = bounds
    if name is None or name not in flow.graph.types or t is None or not t.shape:
        return
    has_step = len(node.inputs) > 4 and node.inputs[4] is not None
    if not starts or not ends or len(starts) != 1 or has_step and steps != (1,):
        return
    has_axes = len(node.inputs) > 3 and node.inputs[3] is not None
    if has_axes and axes is None:
        return
    (axis,) = t.axes(axes) if axes else (0,)
    extent = t.shape[axis]
    if isinstance(extent, int) and ends[0] <= extent:
        start, end, _ = slice(starts[0], ends[0]).indices(extent)
        groups[Source(name, axis, node.scope)].append(Part(start, end, node))


def _are_equal(parts: list[Part], extent: object) -> bool:
    """Return whether two or more parts of equal size follow each other to the end."""
    if len(parts) < 2 or not isinstance(extent, int) or extent % len(parts):
        return False
    size = extent // len(parts)
    bounds = sorted((part.start, part.end) for part in parts)
    whole = [(start, start + size) for start in range(0, extent, size or 1)]
    return bounds == whole


def _split(source: Source, parts: list[Part]) -> Node:
    """Return the split that has the results of all ``parts``, at the first of them."""
    ordered = sorted(parts, key=lambda part: part.start)
    op = Split(axis=source.axis, num_outputs=len(parts), results=len(parts))
    outputs = tuple(part.node.output for part in ordered)
    node = parts[0].node
    return replace(node, op=op, inputs=(source.name,), outputs=outputs)
