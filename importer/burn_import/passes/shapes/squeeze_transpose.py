"""Removes axes of extent 1 that are inserted for a transpose alone."""

from dataclasses import replace

from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope, with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.shape import Transpose
from burn_ir.ops.support import known_ints
from burn_ir.types import Type


def squeeze_transpose(graph: Graph) -> Graph:
    """Return ``graph`` with ``Transpose`` for ``Squeeze(Transpose(Unsqueeze(x)))``.

    The removed axes must be the inserted ones, and the values in between must have no
    other readers. ``nn.MultiheadAttention`` splits its packed projection this way.
    """
    if not graph.operators >= {"Squeeze", "Transpose", "Unsqueeze"}:
        return graph
    flow = Dataflow(graph)
    return with_nodes(graph, [_rewrite(flow, node) for node in graph.nodes])


def _rewrite(flow: Dataflow, last: Node) -> Node:
    if last.op.domain or last.op.onnx != "Squeeze" or len(last.inputs) != 2:
        return last
    turn = flow.made_by(last.inputs[0], "Transpose")
    first = None if turn is None else flow.made_by(turn.inputs[0], "Unsqueeze")
    if turn is None or first is None:
        return last
    perm = turn.op.attrs()["perm"]
    inserted_axes = _axes(
        flow.graph.type(first.output), flow.graph.type(first.inputs[1])
    )
    removed_axes = _axes(flow.graph.type(turn.output), flow.graph.type(last.inputs[1]))
    if perm is None or inserted_axes is None or removed_axes is None:
        return last
    if {perm[axis] for axis in removed_axes} != inserted_axes:
        return last
    if not flow.are_inside([first, turn], last):
        return last
    others = [axis for axis in range(len(perm)) if axis not in inserted_axes]
    position = {axis: number for number, axis in enumerate(others)}
    moved = tuple(position[axis] for axis in perm if axis in position)
    scope, classes = common_scope(first, turn, last)
    new = replace(last, op=Transpose(perm=moved), inputs=first.inputs[:1])
    return replace(new, scope=scope, classes=classes)


def _axes(t: Type | None, axes: Type | None) -> set[int] | None:
    """Return non-negative axes of an axes operand; None if they are unknown."""
    numbers = known_ints(axes)
    if t is None or t.shape is None or numbers is None:
        return None
    return {number % len(t.shape) for number in numbers}
