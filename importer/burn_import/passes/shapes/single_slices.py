"""Writes slices and parts of one entry whose axis is removed as indices: ``x[0]``."""

from dataclasses import replace

import numpy as np

from burn_import.rewriting.arrays import literal
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope, with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.indexing import Gather
from burn_ir.ops.support import known_ints


def single_slices(graph: Graph) -> Graph:
    """Return ``graph`` with ``Gather`` for a ``Slice`` of extent 1 and a ``Squeeze``.

    The slice is along one axis. Its other readers, if there are any, keep it. So is
    a ``Split`` into single entries of which each is squeezed, PyTorch's ``unbind``.
    """
    operators = graph.operators
    if "Squeeze" not in operators or operators.isdisjoint({"Slice", "Split"}):
        return graph
    flow = Dataflow(graph)
    return with_nodes(graph, [_rewrite(node, flow) for node in graph.nodes])


def _rewrite(node: Node, flow: Dataflow) -> Node:
    """Return ``node``, or the gather that computes the same."""
    if flow.made_by(node.outputs[0], "Squeeze") is None:
        return node
    whole = flow.producers.get(node.inputs[0] or "")
    axis = _removed_axis(node, flow)
    if whole is None or axis is None or whole.op.domain:
        return node
    rule = RULES.get(whole.op.onnx)
    start = None if rule is None else rule(whole, node, axis, flow)
    if start is None:
        return node
    index = literal(flow.graph, f"int64({start})", np.array(start))
    scope, classes = common_scope(whole, node)
    inputs = (whole.inputs[0], index)
    op = Gather(axis=axis)
    return replace(node, op=op, inputs=inputs, scope=scope, classes=classes)


def _removed_axis(node: Node, flow: Dataflow) -> int | None:
    """Return the axis of extent 1 that a squeeze removes; None for other ones."""
    t = flow.graph.type(node.inputs[0])
    removed = _only(node.inputs[1] if len(node.inputs) > 1 else None, flow)
    if removed is None or t is None or not t.shape:
        return None
    (axis,) = t.axes((removed,))
    return axis if t.shape[axis] == 1 else None


def _start(sliced: Node, node: Node, axis: int, flow: Dataflow) -> int | None:
    """Return the first entry of a slice along ``axis``; None for other axes."""
    bounds = [*sliced.inputs[1:4], None]
    start, along = (_only(bounds[n], flow) for n in (0, 2))
    t = flow.graph.type(sliced.inputs[0])
    return start if along is not None and t and t.axes((along,)) == (axis,) else None


def _part(split: Node, node: Node, axis: int, flow: Dataflow) -> int | None:
    """Return the index of the part that ``node`` squeezes, if each part is squeezed.

    A split of an extent that is not known checks it.
    """
    extents = flow.extents(split.inputs[0])
    if len(extents) <= axis or extents[axis] != len(split.outputs):
        return None
    for name in split.outputs:
        readers = [] if name is None else flow.graph.users.get(name, ())
        if name in flow.graph.outputs or not readers:
            return None
        if any(
            r.op.onnx != "Squeeze" or _removed_axis(r, flow) != axis for r in readers
        ):
            return None
    is_along = split.op.attrs()["axis"] % len(extents) == axis
    return split.outputs.index(node.inputs[0]) if is_along else None


#: The index of what a squeeze reads, by the operator that makes it.
RULES = {"Slice": _start, "Split": _part}


def _only(name: str | None, flow: Dataflow) -> int | None:
    """Return the only number of a constant vector, else None."""
    numbers = None if name is None else known_ints(flow.graph.type(name))
    return numbers[0] if numbers is not None and len(numbers) == 1 else None
