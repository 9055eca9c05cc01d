"""Removes quantizers of values that are already multiples of the same scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from burn import dtypes
from burn_import.provenance.trainable import is_listed_parameter
from burn_import.rewriting.graphs import with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.shape import Identity

#: Operators whose results are elements of their first operand.
MOVEMENTS = frozenset(
    {"Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Expand"}
    | {"Slice", "Split", "Gather", "Tile", "DepthToSpace", "SpaceToDepth"}
    | {"GlobalMaxPool", "MaxPool"}
)
#: Domains of the quantizers: onnxruntime's are older and have more dtypes.
DOMAINS = ("", "com.microsoft")
#: Dtypes of floats in which the product and the quotient of a 16-bit integer and a
#: scale are off by less than half a unit.
PRECISE = (dtypes.float32, dtypes.float64)
#: Scales between these overflow and underflow with no 16-bit integer.
SMALLEST, LARGEST = 1e-30, 1e30
#: Scale, zero point and quantized dtype: values of equal grids are rounded equally.
Grid: TypeAlias = tuple[object, object, object]


def requantizations(graph: Graph) -> Graph:
    """Return ``graph`` without rounding that follows rounding of the same scale.

    ``dequantize(quantize(x, s, z), s, z)`` is ``x`` if the elements of ``x`` come from
    ``dequantize(_, s, z)`` by data movement or concatenation. Static quantization
    tools insert such pairs after every transpose, reshape and slice, with the same
    scale or another of the same value. Only scales of one element are considered:
    others belong to an axis, which moves.
    """
    if not graph.operators >= {"QuantizeLinear", "DequantizeLinear"}:
        return graph
    grids: dict[str, Grid] = {}
    producers = dict(graph.producers)
    return with_nodes(
        graph, [_rewrite(n, graph, producers, grids) for n in graph.nodes]
    )


def _rewrite(
    node: Node, graph: Graph, producers: Mapping[str, Node], grids: dict[str, Grid]
) -> Node:
    """Return ``node`` or an ``Identity``, and note the grid of its results."""
    if not node.inputs:
        return node
    grid = _dequantized(node, graph) or _moved(node, grids)
    if grid is None:
        return node
    grids.update({name: grid for name in node.outputs if name})
    source = _quantized(node, graph, producers)
    if source is None or grids.get(source) != grid:
        return node
    return node.with_op(Identity(), (source,))


def _dequantized(node: Node, graph: Graph) -> Grid | None:
    """Return the grid of a ``DequantizeLinear`` with one scale."""
    if node.op.onnx != "DequantizeLinear" or node.op.domain not in DOMAINS:
        return None
    result, integers = graph.type(node.output), graph.type(node.inputs[0])
    scale, zero_point = (*node.inputs[1:], None)[:2]
    if result is None or integers is None or result.dtype not in PRECISE:
        return None
    number = _exact_scale(scale, graph)
    if integers.dtype.itemsize > 2 or number is None:
        return None
    return number, _shift(zero_point, graph), integers.dtype


def _exact_scale(name: str | None, graph: Graph) -> float | str | None:
    """Return a stored scale if products divided by it are rounded to themselves.

    One that training changes is returned as its name.
    """
    array = None if name is None else graph.constants.get(name)
    if array is None or name in graph.types or array.size != 1:
        return None
    number = float(array.reshape(()))
    is_exact = array.dtype in PRECISE and SMALLEST < number < LARGEST
    if not is_exact:
        return None
    return name if is_listed_parameter(graph, str(name)) else number


def _shift(name: str | None, graph: Graph) -> object:
    """Return what equal zero points have in common: a name, or a stored number.

    One that is omitted is equal to one of zero.
    """
    if name is None:
        return 0
    array = graph.constants.get(name)
    if array is None or name in graph.types or array.size != 1:
        return name
    return float(array.reshape(()))


def _moved(node: Node, grids: Mapping[str, Grid]) -> Grid | None:
    """Return the grid of the elements that a node moves."""
    name = node.inputs[0]
    grid = None if name is None else grids.get(name)
    if grid is None or node.op.domain:
        return None
    if node.op.onnx in MOVEMENTS:
        return grid
    if node.op.onnx == "Concat" and all(
        grids.get(n or "") == grid for n in node.inputs
    ):
        return grid
    return None


def _quantized(node: Node, graph: Graph, producers: Mapping[str, Node]) -> str | None:
    """Return the operand of the quantizer whose result ``node`` dequantizes."""
    first = producers.get(node.inputs[0] or "")
    if first is None or node.op.onnx != "DequantizeLinear":
        return None
    if first.op.onnx != "QuantizeLinear" or first.op.domain not in DOMAINS:
        return None
    source, result = graph.type(first.inputs[0]), graph.type(node.output)
    if source is None or result is None or source.dtype != result.dtype:
        return None
    if first.op.attrs().get("precision"):
        return None
    shifts = [_shift((*n.inputs, None)[2], graph) for n in (node, first)]
    is_inverse = node.inputs[1] == first.inputs[1] and shifts[0] == shifts[1]
    return first.inputs[0] if is_inverse else None
