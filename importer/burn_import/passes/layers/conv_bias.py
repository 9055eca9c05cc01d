"""Recovers the bias of a convolution from a following addition, or that it has none."""

from dataclasses import replace

from burn_import.rewriting.arrays import derive
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope, with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.conv import Conv, ConvTranspose


def conv_bias(graph: Graph) -> Graph:
    """Return ``graph`` with additions of a constant per channel as conv biases.

    The constant has one element per channel, and extent 1 on all other axes. Results
    may differ by rounding. Zeros that are no stored weight, which PyTorch's exporter
    writes for ``bias=False``, are removed.
    """
    if not any(isinstance(node.op, Conv | ConvTranspose) for node in graph.nodes):
        return graph
    flow = Dataflow(graph)
    nodes = []
    for node in graph.nodes:
        node = _without_zero_bias(node, flow)
        for name, term in _operands(node):
            layer = flow.producers.get(name)
            bias = None if layer is None else _bias(layer, node, term, flow)
            if layer is not None and bias is not None:
                node = _with_bias(layer, node, bias)
                break
        nodes.append(node)
    return with_nodes(graph, nodes)


def _without_zero_bias(node: Node, flow: Dataflow) -> Node:
    """Return a convolution without its bias if that is zeros of the program."""
    if not isinstance(node.op, Conv | ConvTranspose) or len(node.inputs) < 3:
        return node
    bias = node.inputs[2]
    array = flow.stored(bias)
    if array is None or array.any() or bias not in flow.graph.constants.literals:
        return node
    return replace(node, inputs=node.inputs[:2])


def _operands(node: Node) -> list[tuple[str, str]]:
    """Return the operands of an addition, in both orders."""
    if node.op.domain or node.op.onnx != "Add":
        return []
    a, b = node.inputs
    return [] if a is None or b is None else [(a, b), (b, a)]


def _bias(layer: Node, node: Node, term: str, flow: Dataflow) -> str | None:
    """Return ``term`` as a vector if it can be the bias of ``layer``, else None."""
    if not isinstance(layer.op, Conv | ConvTranspose) or len(layer.inputs) > 2:
        return None
    weight, array = flow.stored(layer.inputs[1]), flow.stored(term)
    if weight is None or array is None or array.dtype != weight.dtype:
        return None
    channels = weight.shape[0]
    if isinstance(layer.op, ConvTranspose):
        channels = weight.shape[1] * layer.op.group
    shape = (1,) * (weight.ndim - array.ndim) + array.shape
    if shape != (1, channels, *(1 for _ in weight.shape[2:])):
        return None
    if not flow.are_inside((layer,), node):
        return None
    return derive(flow.graph, term, array.reshape(-1), ".vector")


def _with_bias(layer: Node, node: Node, bias: str) -> Node:
    scope, classes = common_scope(layer, node)
    inputs = (*layer.inputs, bias)
    return replace(node, op=layer.op, inputs=inputs, scope=scope, classes=classes)
