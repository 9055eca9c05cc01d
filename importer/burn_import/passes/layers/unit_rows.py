"""Recovers layers of one spatial axis from those of two, one of extent 1."""

from dataclasses import replace

from burn_import.rewriting.arrays import derive, integers
from burn_import.rewriting.dataflow import Dataflow
from burn_ir.graph import Graph, Node
from burn_ir.ops.conv import Conv
from burn_ir.ops.pool import AveragePool, MaxPool
from burn_ir.ops.shape import Squeeze
from burn_ir.ops.support import known_ints

#: Attributes with one number for each spatial axis.
_PER_AXIS = ("dilations", "kernel_shape", "strides")
#: The first spatial axis.
_AXIS = 2


def unit_rows(graph: Graph) -> Graph:
    """Return ``graph`` with ``Conv`` and pools of ``[b, c, w]`` for ``[b, c, 1, w]``.

    TensorFlow computes layers of one axis with those of two. A ``Squeeze`` of the
    first spatial axis moves in front of a convolution or a pool whose kernel, like its
    operand, has extent 1 there and is not padded. The result is read by the
    ``Squeeze`` alone.
    """
    if "Squeeze" not in graph.operators:
        return graph
    while (new := _moved_once(graph)) is not graph:
        graph = new
    return graph


def _moved_once(graph: Graph) -> Graph:
    """Return the graph with each such ``Squeeze`` before the layer that it follows."""
    flow = Dataflow(graph)
    instead: dict[int, list[Node]] = {}
    for node in graph.nodes:
        layer = _layer_before(node, flow)
        narrow = None if layer is None else _without_rows(layer, flow)
        if layer is None or narrow is None:
            continue
        name = flow.fresh(f"{layer.output}.operand")
        axes = integers(graph, [_AXIS])
        squeeze = replace(node, inputs=(layer.inputs[0], axes), outputs=(name,))
        inputs = (name, *narrow.inputs[1:])
        instead[id(layer)] = [squeeze]
        instead[id(node)] = [replace(narrow, inputs=inputs, outputs=node.outputs)]
    nodes = [new for node in graph.nodes for new in instead.get(id(node), [node])]
    return graph.with_nodes(nodes) if instead else graph


def _layer_before(node: Node, flow: Dataflow) -> Node | None:
    """Return the layer whose only reader is a ``Squeeze`` of the first spatial axis."""
    if not isinstance(node.op, Squeeze) or len(node.inputs) < 2:
        return None
    layer = flow.producers.get(str(node.inputs[0]))
    if layer is None or not isinstance(layer.op, Conv | MaxPool | AveragePool):
        return None
    axes = known_ints(flow.graph.type(node.inputs[1]))
    x = flow.extents(layer.inputs[0])
    if axes not in ((_AXIS,), (_AXIS - 4,)) or len(x) != 4 or x[_AXIS] != 1:
        return None
    if any(layer.outputs[1:]) or not flow.are_inside((layer,), node):
        return None
    return layer


def _without_rows(layer: Node, flow: Dataflow) -> Node | None:
    """Return a layer without its first spatial axis; None if its kernel is larger."""
    attrs = layer.op.attrs()
    kernel = attrs["kernel_shape"]
    inputs = layer.inputs
    if isinstance(layer.op, Conv):
        weight = flow.stored(inputs[1])
        if weight is None or weight.ndim != 4 or inputs[1] is None:
            return None
        kernel = weight.shape[2:]
        array = weight[:, :, 0]
        inputs = (inputs[0], derive(flow.graph, inputs[1], array, ".row"), *inputs[2:])
    pads = attrs["pads"]
    if kernel[0] != 1 or pads and (pads[0] or pads[2]):
        return None
    new = {n: attrs[n][1:] for n in _PER_AXIS if attrs[n] is not None}
    op = layer.op.with_attrs(**new, pads=pads and (pads[1], pads[3]))
    return replace(layer, op=op, inputs=inputs)
