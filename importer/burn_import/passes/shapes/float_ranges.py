"""Counts positions along an axis as integers, and casts them afterwards."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from burn.dtypes import is_integer
from burn_import.rewriting.arrays import number
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.graph import Graph, Node

#: The fewest bytes of a float that represents all positions of an axis.
FEWEST_BYTES = 4


def float_ranges(graph: Graph) -> Graph:
    """Return ``graph`` with casts of integer ranges for ``Range(0.0, float(n), 1.0)``.

    ``n`` is computed from extents, so that the number of elements is known. A float32
    represents all integers up to 2**24, more than an axis has.
    """
    if not any(node.op.onnx == "Range" for node in graph.nodes):
        return graph
    flow = Dataflow(graph)
    nodes = [new for node in graph.nodes for new in _rewritten(node, flow)]
    return with_nodes(graph, nodes)


def _rewritten(node: Node, flow: Dataflow) -> Iterator[Node]:
    """Yield ``node``, or the nodes that replace it."""
    cast = None if node.op.domain else _integer_range(node, flow)
    count = None if cast is None else flow.graph.type(cast.inputs[0])
    if cast is None or count is None:
        yield node
        return
    zero, one = (number(flow.graph, value, np.dtype(count.dtype)) for value in (0, 1))
    whole = flow.fresh(f"{node.output}.whole")
    yield replace(node, inputs=(zero, cast.inputs[0], one), outputs=(whole,))
    yield replace(node, op=cast.op, inputs=(whole,))


def _integer_range(node: Node, flow: Dataflow) -> Node | None:
    """Return the cast of the limit of a range that counts from 0, else None."""
    if node.op.onnx != "Range":
        return None
    start, limit, step = node.inputs
    if (flow.scalar(start), flow.scalar(step)) != (0, 1):
        return None
    cast, dtype = flow.made_by(limit, "Cast"), flow.graph.type(node.output)
    count = None if cast is None else flow.graph.type(cast.inputs[0])
    if count is None or dtype is None or dtype.dtype.itemsize < FEWEST_BYTES:
        return None
    return cast if count.known is not None and is_integer(count.dtype) else None
