"""Classification of stored arrays from the operands they fill.

Producers other than PyTorch name neither parameters nor buffers. Fill values, bounds
and scales are recognized by the operators that read them, and parameters that an
exporter stored in another shape under a name of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any

from burn_import.provenance.weight_owners import is_authored, is_key, original
from burn_ir.graph import Graph, Node, nested_nodes
from burn_ir.types import Array

#: Operands that are always numbers of the program.
NUMBERS: Mapping[str, Collection[int]] = {
    **dict.fromkeys(("Equal", "Greater", "GreaterOrEqual"), (0, 1)),
    **dict.fromkeys(("Less", "LessOrEqual"), (0, 1)),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), (1, 2)),
    **dict.fromkeys(("BitShift", "Mod"), (0, 1)),
    "Clip": (1, 2),
    "Pad": (2,),
    "OneHot": (1, 2),
    "Range": (0, 1, 2),
    "QLinearConv": (1, 4, 6),
    "QLinearMatMul": (1, 4, 6),
    "Resize": (1, 2),
    "STFT": (2,),
    "NonMaxSuppression": (0, 1, 3, 4),
    "Dropout": (1,),
    "ConvInteger": (2, 3),
    "MatMulInteger": (2, 3),
    "Upsample": (1,),
}
#: Operands that are numbers of the program if all elements are equal.
FILLS: Mapping[str, Collection[int]] = {
    "Where": (1, 2),
    "ScatterND": (0, 2),
    "ScatterElements": (0, 2),
    "Pow": (1,),
    "Max": (0, 1),
    "Min": (0, 1),
}
#: Operands that are numbers of the program if they are scalars: a fill value.
SCALARS: Mapping[str, Collection[int]] = {"Expand": (0,)}
#: Operators of layers whose third and fourth operands are scale and zero point.
QUANTIZED_LAYERS = (
    *("DynamicQuantizeConv", "DynamicQuantizeMatMul", "WeightQuantizedConv"),
    *("WeightQuantizedEmbedding", "WeightQuantizedLinear"),
)
#: Operands that are scales, and operands that are zero points.
SCALES: Mapping[str, Collection[int]] = {
    **dict.fromkeys(("QuantizeDequantize", "QuantizeLinear", "DequantizeLinear"), (1,)),
    **dict.fromkeys(("QLinearConv", "QLinearMatMul"), (1, 4, 6)),
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), (1, 4, 6)),
    "QLinearGlobalAveragePool": (1, 3),
    "QGemm": (1, 4, 7),
    **dict.fromkeys(("MatMulNBits", "GatherBlockQuantized"), (2, 3)),
    **dict.fromkeys(QUANTIZED_LAYERS, (2,)),
    "MatMulBnb4": (2,),
    "MatMulIntegerToFloat": (2, 3),
}
ZERO_POINTS: Mapping[str, Collection[int]] = {
    **dict.fromkeys(("QuantizeDequantize", "QuantizeLinear", "DequantizeLinear"), (2,)),
    **dict.fromkeys(QUANTIZED_LAYERS, (3,)),
    **dict.fromkeys(("ConvInteger", "MatMulInteger"), (2, 3)),
    "QLinearConv": (2, 5, 7),
    "QLinearMatMul": (2, 5, 7),
}
#: Operands that are parameters by the definition of the operator.
LEARNED: Mapping[str, Collection[int]] = {"PRelu": (1,)}


def note_fills(graph: Graph) -> None:
    """Add keyless arrays to ``fills``, ``measured`` or ``learned`` of the constants."""
    readers: dict[str, list[bool]] = defaultdict(list)
    for name, is_number in _uses(graph):
        readers[name].append(is_number)
    constants = graph.constants
    for name, uses in readers.items():
        key = original(graph, name)
        named = is_authored(graph, name) or is_key(graph.producer, key)
        if all(uses) and not named:
            constants.fills.add(name)
    constants.measured.update(_calibrated_constants(graph))
    constants.learned.update(_learned_constants(graph))


def _uses(graph: Graph) -> Iterator[tuple[str, bool]]:
    """Yield each read of a stored array, and whether the operand is a number."""
    constants = graph.constants
    for node in graph.nodes:
        for inner in nested_nodes(node):
            for position, name in enumerate(inner.inputs):
                if name is not None and name in constants:
                    yield name, _is_number(inner, position, constants[name])


def _is_number(node: Node, position: int, array: Array) -> bool:
    if node.op.domain not in ("", "ai.onnx"):
        return False
    if position in NUMBERS.get(node.op.onnx, ()):
        return True
    if position in SCALARS.get(node.op.onnx, ()) and not array.shape:
        return True
    if position not in FILLS.get(node.op.onnx, ()) or not array.size:
        return False
    return bool((array == array.reshape(-1)[0]).all())


def _calibrated_constants(graph: Graph) -> Iterator[str]:
    """Yield scales and zero points from calibration, not written by an author.

    If all zero points of a dtype are 0, the quantization is symmetric, and they
    count as numbers of the program.
    """
    constants = graph.constants
    points: dict[Any, list[str]] = defaultdict(list)
    for node in chain.from_iterable(map(nested_nodes, graph.nodes)):
        yield from _operands(node, SCALES, graph)
        if node.op.onnx == "Mul":
            yield from _dynamic_scales(node, graph)
        for name in _operands(node, ZERO_POINTS, graph):
            points[constants[name].dtype].append(name)
    for names in points.values():
        if any(constants[name].any() for name in names):
            yield from names


def _learned_constants(graph: Graph) -> Iterator[str]:
    """Yield the arrays that operators define as parameters, if no author wrote them."""
    for node in chain.from_iterable(map(nested_nodes, graph.nodes)):
        for name in _operands(node, LEARNED, graph):
            if original(graph, name) not in graph.constants.literals:
                yield name


def _operands(
    node: Node, positions: Mapping[str, Collection[int]], graph: Graph
) -> Iterator[str]:
    """Yield the stored arrays among the operands of a node at ``positions``."""
    for position in positions.get(node.op.onnx, ()):
        name = node.inputs[position] if position < len(node.inputs) else None
        if name is not None and name in graph.constants:
            yield name


def _dynamic_scales(node: Node, graph: Graph) -> Iterator[str]:
    """Yield weight scales that a node multiplies by a dynamic scale."""
    makers = [graph.producers.get(name or "") for name in node.inputs]
    for name, other in zip(node.inputs, makers[::-1], strict=True):
        is_scale = other is not None and other.op.onnx == "DynamicQuantizeLinear"
        if is_scale and name is not None and name in graph.constants:
            yield name
