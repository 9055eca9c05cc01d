"""Removes gathers that read every element of a tensor in memory order."""

from dataclasses import replace

from burn_import.passes.shapes.affine_indices import Ramp, Ramps
from burn_import.passes.shapes.compose_movements import RESHAPES
from burn_import.rewriting.arrays import integers
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope, with_nodes
from burn_ir.dim import Dim
from burn_ir.graph import Graph, Node
from burn_ir.op import operators
from burn_ir.ops.shape import Reshape


def strided_views(graph: Graph) -> Graph:
    """Return ``graph`` with ``Reshape`` or ``Identity`` for in-order gathers.

    PyTorch's exporter writes ``as_strided`` as a ``Gather`` from the flat tensor at
    computed indices. They read all elements in order if they start at 0 and their
    stride along each axis is the product of the later extents.
    """
    if "Gather" not in graph.operators:
        return graph
    flow = Dataflow(graph)
    ramps = Ramps(flow)
    return with_nodes(graph, [_as_view(node, flow, ramps) for node in graph.nodes])


def _as_view(node: Node, flow: Dataflow, ramps: Ramps) -> Node:
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
    extents = [dim if isinstance(dim, int) else -1 for dim in shape]
    if extents.count(-1) > 1 or 0 in extents:
        return node
    inputs = (flat.inputs[0], integers(flow.graph, extents))
    return replace(node, op=Reshape(), inputs=inputs)


def _is_in_order(ramp: Ramp, shape: tuple[Dim, ...]) -> bool:
    """Return whether a ramp of that shape counts all elements from 0."""
    contiguous_stride: Dim = 1
    for step, extent in zip(reversed(ramp.steps), reversed(shape), strict=True):
        if extent != 1 and step != contiguous_stride:
            return False
        contiguous_stride = contiguous_stride * extent
    return ramp.offset == 0


def _count(shape: tuple[Dim, ...]) -> Dim:
    total: Dim = 1
    for extent in shape:
        total = total * extent
    return total
