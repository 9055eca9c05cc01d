"""Removes the lookup of every element of a tensor in the order in which they lie."""

from __future__ import annotations

from dataclasses import replace

from burn_import.passes.shapes.affine_indices import Ramp, Ramps
from burn_import.passes.shapes.compose_movements import RESHAPES
from burn_import.rewriting.arrays import integers
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import changed, common_scope
from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.op import operators
from burn_ir.ops.shape import Reshape


def strided_views(graph: Graph) -> Graph:
    """``graph`` with ``Reshape`` or ``Identity`` for lookups of all elements in order.

    PyTorch's exporter writes ``as_strided``, which some of its layers end in, as a
    ``Gather`` from the flat tensor at places that are computed. They are the places of
    all elements one after the other if along each axis they grow by the product of the
    extents behind.
    """
    if "Gather" not in graph.operators:
        return graph
    flow = Dataflow(graph)
    ramps = Ramps(flow)
    return changed(graph, [_viewed(node, flow, ramps) for node in graph.nodes])


def _viewed(node: Node, flow: Dataflow, ramps: Ramps) -> Node:
    if node.op.domain or node.op.onnx != "Gather" or node.op.attrs()["axis"]:
        return node
    flat = flow.made_by(node.inputs[0], *RESHAPES)
    if flat is None or flat.inputs[0] is None or len(flow.extents(flat.output)) != 1:
        return node
    shape, ramp = flow.extents(node.output), ramps.of(node.inputs[1])
    if ramp is None or not _is_in_order(ramp, shape):
        return node
    if _count(shape) != flow.extents(flat.output)[0]:
        return node
    scope, classes = common_scope(flat, node)
    node = replace(node, scope=scope, classes=classes)
    if flow.extents(flat.inputs[0]) == shape:
        identity = operators()[("", "Identity")]()
        return replace(node, op=identity, inputs=flat.inputs[:1])
    known = [dim if isinstance(dim, int) else -1 for dim in shape]
    if known.count(-1) > 1 or 0 in known:
        return node
    inputs = (flat.inputs[0], integers(flow.graph, known))
    return replace(node, op=Reshape(), inputs=inputs)


def _is_in_order(ramp: Ramp, shape: tuple[Dim, ...]) -> bool:
    """Whether a ramp of that shape counts its elements from 0."""
    behind: Dim = 1
    for step, extent in zip(reversed(ramp.steps), reversed(shape), strict=True):
        if extent != 1 and step != behind:
            return False
        behind = behind * extent
    return ramp.offset == 0


def _count(shape: tuple[Dim, ...]) -> Dim:
    total: Dim = 1
    for extent in shape:
        total = total * extent
    return total
