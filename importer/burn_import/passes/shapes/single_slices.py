"""Writes a slice of one entry whose axis is removed as an index: ``x[0]``."""

from __future__ import annotations

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

    The slice is along one axis. Its other readers, if there are any, keep it.
    """
    if not {"Slice", "Squeeze"} <= graph.operators:
        return graph
    flow = Dataflow(graph)
    return with_nodes(graph, [_rewrite(node, flow) for node in graph.nodes])


def _rewrite(node: Node, flow: Dataflow) -> Node:
    """Return ``node``, or the gather that computes the same."""
    if flow.made_by(node.outputs[0], "Squeeze") is None:
        return node
    sliced = flow.made_by(node.inputs[0], "Slice")
    bounds = [] if sliced is None else [*sliced.inputs[1:4], None]
    start, axis = (_only(bounds[n], flow) if bounds else None for n in (0, 2))
    t = flow.graph.type(node.inputs[0])
    if sliced is None or start is None or axis is None or t is None or not t.shape:
        return node
    (axis,) = t.axes((axis,))
    removed = _only(node.inputs[1] if len(node.inputs) > 1 else None, flow)
    if removed is None or t.axes((removed,)) != (axis,) or t.shape[axis] != 1:
        return node
    index = literal(flow.graph, f"int64({start})", np.array(start))
    scope, classes = common_scope(sliced, node)
    inputs = (sliced.inputs[0], index)
    op = Gather(axis=axis)
    return replace(node, op=op, inputs=inputs, scope=scope, classes=classes)


def _only(name: str | None, flow: Dataflow) -> int | None:
    """Return the only number of a constant vector, else None."""
    numbers = None if name is None else known_ints(flow.graph.type(name))
    return numbers[0] if numbers is not None and len(numbers) == 1 else None
