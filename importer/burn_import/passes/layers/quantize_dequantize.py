"""Recovers rounding to quantized numbers: a quantizer and the dequantizer after it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from burn import dtypes
from burn.dtypes import DType
from burn_import.provenance.trainable import is_listed_parameter
from burn_import.rewriting.arrays import derive
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.support import ELEMENT_NUMBERS
from burn_ir.ops.weight_quantized import SIGNED, QuantizeDequantize
from burn_ir.types import Array

#: Domains of the operators: onnxruntime's are older and have more dtypes.
DOMAINS = ("", "com.microsoft")


def quantize_dequantize(graph: Graph) -> Graph:
    """Return ``graph`` with ``QuantizeDequantize`` for quantizers and their inverses.

    Scale and zero point are stored numbers that training does not change, and nothing
    else reads the integers. A node without a scope, which quantization tools insert,
    belongs to the module that computes its operand.
    Zero points that are 0 in all nodes of a signed dtype are omitted.
    """
    if not graph.operators >= {"QuantizeLinear", "DequantizeLinear"}:
        return graph
    flow = Dataflow(graph)
    nodes = [_rewrite(node, flow) for node in graph.nodes]
    shifted = {_shift_dtype(node, flow) for node in nodes}
    return with_nodes(graph, [_without_zeros(node, flow, shifted) for node in nodes])


def _shift_dtype(node: Node, flow: Dataflow) -> DType | None:
    """Return the dtype of the zero point of a quantizer if it is not 0."""
    array = _zero_point(node, flow)
    return array.dtype if array is not None and array.any() else None


def _zero_point(node: Node, flow: Dataflow) -> Array | None:
    """Return the zero point of a quantizer, None for other nodes."""
    if not isinstance(node.op, QuantizeDequantize) or len(node.inputs) < 3:
        return None
    return flow.stored(node.inputs[2])


def _without_zeros(node: Node, flow: Dataflow, shifted: Collection[object]) -> Node:
    """Return a quantizer without a zero point of a signed dtype not in ``shifted``."""
    array = _zero_point(node, flow)
    if array is None or array.dtype in shifted or array.dtype not in SIGNED:
        return node
    op = QuantizeDequantize(output_dtype=ELEMENT_NUMBERS[array.dtype])
    return node.with_op(op, node.inputs[:2])


def _rewrite(node: Node, flow: Dataflow) -> Node:
    """Return ``QuantizeDequantize`` for a dequantizer, or ``node``."""
    if node.op.onnx != "DequantizeLinear" or node.op.domain not in DOMAINS:
        return node
    first = flow.producers.get(node.inputs[0] or "")
    if first is None or first.op.onnx != "QuantizeLinear":
        return node
    if first.op.domain not in DOMAINS or not flow.are_inside([first], node):
        return node
    if first.inputs[1:] != node.inputs[1:] or not _is_plain(first, node, flow.graph):
        return node
    numbers = [_number(name, flow) for name in first.inputs[1:]]
    if None in numbers:
        return node
    target = flow.graph.type(first.output)
    options = {}
    if len(numbers) == 1 and target is not None and target.dtype != dtypes.uint8:
        options["output_dtype"] = ELEMENT_NUMBERS[target.dtype]
    scope, classes = _scope(first, flow)
    new = replace(first, op=QuantizeDequantize(**options), outputs=node.outputs)
    inputs = (first.inputs[0], *numbers)
    return replace(new, inputs=inputs, scope=scope, classes=classes)


def _is_plain(quantize: Node, dequantize: Node, graph: Graph) -> bool:
    """Return whether operand, scale and result have one dtype."""
    names = quantize.inputs[0], quantize.inputs[1], dequantize.output
    types = [graph.type(name) for name in names]
    attrs = quantize.op.attrs()
    if attrs.get("precision") or not attrs.get("saturate", 1):
        return False
    kinds = {None if t is None else t.dtype for t in types}
    return len(kinds) == 1 and kinds <= {dtypes.float32, dtypes.float16}


def _number(name: str | None, flow: Dataflow) -> str | None:
    """Return a stored number without axes, or None."""
    array = flow.stored(name)
    if name is None or array is None or array.size != 1:
        return None
    if is_listed_parameter(flow.graph, name):
        return None
    return derive(flow.graph, name, array.reshape(()), ".number")


def _scope(node: Node, flow: Dataflow) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return scope and classes of the module in which ``node`` runs."""
    if node.scope:
        return node.scope, node.classes
    producer = flow.producers.get(node.inputs[0] or "")
    if producer is not None:
        return producer.scope, producer.classes
    return node.scope, node.classes
