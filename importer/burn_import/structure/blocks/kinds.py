"""Keys that are equal for nodes that differ only in sizes."""

from collections.abc import Hashable

from burn_ir.graph import Graph, Node
from burn_ir.ops.conv import Conv

#: The kinds of a block's nodes.
Form = tuple[Hashable, ...]
#: The positions of a block's nodes.
Positions = tuple[int, ...]


def operator_kind(graph: Graph, node: Node) -> Hashable:
    """Return the operator of a node, whatever its attributes and operands are.

    A depthwise convolution is of another kind than one that mixes channels, and a
    pointwise one of another kind than one that mixes pixels.
    """
    weight = graph.type(node.inputs[1]) if len(node.inputs) > 1 else None
    if not isinstance(node.op, Conv) or weight is None or weight.shape is None:
        return node.op.onnx
    _, channels, *kernel = weight.shape
    return node.op.onnx, channels == 1, all(extent == 1 for extent in kernel)
