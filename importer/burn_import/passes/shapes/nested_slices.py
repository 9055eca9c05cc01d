"""Joins slices of slices along other axes: ``x[:, ::2, 1::2]``."""

from dataclasses import replace

from burn_import.rewriting.arrays import integers
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.support import known_ints

#: Starts, ends, axes and steps of a slice.
Bounds = tuple[tuple[int, ...], ...]


def nested_slices(graph: Graph) -> Graph:
    """Return ``graph`` with one ``Slice`` for two along different axes.

    Bounds must be constants, and all readers of the first slice must be such slices.
    """
    if "Slice" not in graph.operators:
        return graph
    flow = Dataflow(graph)
    nodes = []
    for node in graph.nodes:
        joined = _join(node, flow)
        if joined is not node:
            flow.producers[joined.output] = joined
        nodes.append(joined)
    return with_nodes(graph, nodes)


def _join(node: Node, flow: Dataflow) -> Node:
    """Return ``node`` with the bounds of the slice that it reads, if that is one."""
    outer = _bounds(node, flow)
    first = flow.made_by(node.inputs[0], "Slice") if outer else None
    inner = None if first is None else _bounds(first, flow)
    if first is None or inner is None or outer is None:
        return node
    if first.output in flow.outputs or not set(inner[2]).isdisjoint(outer[2]):
        return node
    if not all(_is_beside(user, inner, flow) for user in flow.users[first.output]):
        return node
    rows = [a + b for a, b in zip(inner, outer, strict=True)]
    order = sorted(range(len(rows[2])), key=lambda column: rows[2][column])
    lists = [integers(flow.graph, [row[column] for column in order]) for row in rows]
    return replace(node, inputs=(first.inputs[0], *lists))


def _is_beside(user: Node, inner: Bounds, flow: Dataflow) -> bool:
    """Return whether ``user`` is a slice along other axes."""
    outer = _bounds(user, flow)
    return outer is not None and set(inner[2]).isdisjoint(outer[2])


def _bounds(node: Node, flow: Dataflow) -> Bounds | None:
    """Return the bounds of a slice with axes from the first; None unless known."""
    if flow.made_by(node.outputs[0], "Slice") is None:
        return None
    t = flow.graph.type(node.inputs[0])
    bounds = [known_ints(flow.graph.type(name)) for name in node.inputs[1:]]
    if t is None or t.shape is None or None in bounds[:2]:
        return None
    starts, ends = (row or () for row in bounds[:2])
    if any(
        name and row is None for name, row in zip(node.inputs[1:], bounds, strict=True)
    ):
        return None
    axes, steps = (*bounds[2:], None, None)[:2]
    axes = tuple(range(len(starts))) if axes is None else t.axes(axes)
    return starts, ends, tuple(axes), steps or (1,) * len(starts)
