"""Recovers layers that dequantize a stored weight."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from burn import dtypes
from burn_import.passes.layers.block_quantized_products import block_quantized_product
from burn_import.provenance.trainable import is_listed_parameter
from burn_import.rewriting.arrays import derive
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import with_nodes, without_trailing
from burn_ir.graph import Graph, Node
from burn_ir.op import Op
from burn_ir.ops.fused import Linear
from burn_ir.ops.matmul import Gemm
from burn_ir.ops.weight_quantized import (
    SIGNED,
    WEIGHTS,
    WeightQuantizedConv,
    WeightQuantizedEmbedding,
    WeightQuantizedLinear,
)

#: A weight, its scale and its zero point, if it has one.
Quantized = tuple[str, str, str | None]
#: Domains of the dequantizers: onnxruntime's are older and have more dtypes.
DOMAINS = ("", "com.microsoft")


def quantized_weights(graph: Graph) -> Graph:
    """Return ``graph`` with one node for each layer of a quantized weight.

    ``WeightQuantizedConv``, ``WeightQuantizedLinear`` and ``WeightQuantizedEmbedding``
    replace ``Conv``, ``MatMul``, ``Gemm`` and ``Gather`` of a stored array behind
    ``DequantizeLinear``, with one scale or one for each output. The matrix of a product
    is stored as [out, in]; with scales of blocks it is ``MatMulNBits``. Rows of a table
    may be looked up before or after they are dequantized.
    """
    if "DequantizeLinear" not in graph.operators:
        return graph
    rewriter = _Rewriter(Dataflow(graph))
    return with_nodes(graph, [rewriter.rewrite(node) for node in graph.nodes])


class _Rewriter:
    def __init__(self, flow: Dataflow) -> None:
        self.flow, self.graph = flow, flow.graph

    def rewrite(self, node: Node) -> Node:
        """Return the layer that ``node`` is, or ``node``."""
        name = node.op.onnx
        if name == "DequantizeLinear" and node.op.domain in DOMAINS:
            return self.rows(node)
        if node.op.domain and not isinstance(node.op, Linear):
            return node
        if name == "Conv":
            op = WeightQuantizedConv(**node.op.attrs())
            return self.layer(node, op, self.weight(node.inputs[1], axis=0))
        if name in ("Gemm", "Linear", "MatMul"):
            return self.product(node)
        return self.lookup(node) if name == "Gather" else node

    def product(self, node: Node) -> Node:
        """Return the product with a dequantized matrix as a layer."""
        attrs = node.op.attrs()
        is_straight = node.op.onnx == "Linear" or bool(attrs.get("transB"))
        if isinstance(node.op, Gemm) and (
            attrs["transA"] or attrs["alpha"] != 1 or attrs["beta"] != 1
        ):
            return node
        if not self.flow.extents(node.inputs[0]):
            return node
        bias = (*node.inputs, None)[2]
        product = block_quantized_product(self.flow, node, bias, is_straight)
        if product is not None:
            return product
        operands = self.weight(node.inputs[1], axis=0 if is_straight else 1)
        if operands is None or self.graph.constants[operands[0]].ndim != 2:
            return node
        outer = self.graph.constants[operands[0]].shape[0 if is_straight else 1]
        if bias is not None and self.flow.extents(bias) != (outer,):
            return node
        if not is_straight:
            weight = self.graph.constants[operands[0]]
            name = derive(self.graph, operands[0], weight.T, ".T")
            operands = name, *operands[1:]
        return self.layer(node, WeightQuantizedLinear(), operands)

    def layer(self, node: Node, op: Op, operands: Quantized | None) -> Node:
        """Return ``node`` as ``op`` with a quantized weight, if it has one."""
        x, bias = self.graph.type(node.inputs[0]), (*node.inputs, None)[2]
        if operands is None or x is None or x.dtype != dtypes.float32:
            return node
        inputs = (node.inputs[0], *operands, bias)
        return replace(node, op=op, inputs=without_trailing(inputs))

    def lookup(self, node: Node) -> Node:
        """Return the rows of a dequantized table as a layer."""
        operands = self.weight(node.inputs[0], axis=None)
        return self.embedding(node, node, operands)

    def rows(self, node: Node) -> Node:
        """Return the dequantized rows of a table as a layer."""
        gather = self.flow.made_by(node.inputs[0], "Gather")
        if gather is None or not self.flow.are_inside([gather], node):
            return node
        operands = self.scaled(node, gather.inputs[0], axis=None)
        return self.embedding(node, gather, operands)

    def embedding(self, node: Node, gather: Node, operands: Quantized | None) -> Node:
        """Return ``node`` as a lookup of quantized rows."""
        if operands is None or gather.op.attrs()["axis"] != 0:
            return node
        indices = self.graph.type(gather.inputs[1])
        if self.graph.constants[operands[0]].ndim != 2:
            return node
        if indices is None or indices.known is not None:
            return node
        inputs = without_trailing((gather.inputs[1], *operands))
        op = WeightQuantizedEmbedding()
        return replace(gather, op=op, inputs=inputs, outputs=node.outputs)

    def weight(self, name: str | None, axis: int | None) -> Quantized | None:
        """Return the operands from which a stored weight is dequantized."""
        node = None if name is None else self.flow.producers.get(name)
        if node is None or node.op.onnx != "DequantizeLinear":
            return None
        if node.op.domain not in DOMAINS:
            return None
        return self.scaled(node, node.inputs[0], axis)

    def scaled(
        self, node: Node, name: str | None, axis: int | None
    ) -> Quantized | None:
        """Return a stored array with the scales of ``node``: one, or those of ``axis``.

        The shapes of scale and zero point are ``()`` or a vector.
        """
        array, attrs = self.flow.stored(name), node.op.attrs()
        scale, zero_point = (*node.inputs[1:], None)[:2]
        if array is None or array.dtype not in WEIGHTS or attrs.get("block_size"):
            return None
        result, numbers = self.graph.type(node.output), self.flow.stored(scale)
        if result is None or result.dtype != dtypes.float32 or numbers is None:
            return None
        if numbers.dtype != dtypes.float32 or is_listed_parameter(
            self.graph, str(scale)
        ):
            return None
        shape: tuple[int, ...] = ()
        if numbers.size > 1:
            own = attrs["axis"] % array.ndim if array.ndim > 1 else 0
            if axis != own or numbers.shape != array.shape[own : own + 1]:
                return None
            shape = numbers.shape
        if array.dtype in SIGNED and self.is_zero(zero_point):
            zero_point = None  # of a symmetric quantization
        shaped = self.shaped(zero_point, shape)
        if zero_point is not None and shaped is None:
            return None
        return str(name), str(self.shaped(scale, shape)), shaped

    def is_zero(self, name: str | None) -> bool:
        """Return whether a zero point is stored as zeros."""
        array = self.flow.stored(name)
        return array is not None and not np.any(array)

    def shaped(self, name: str | None, shape: tuple[int, ...]) -> str | None:
        """Return a stored scale or zero point in ``shape``; None if it has another."""
        array = self.flow.stored(name)
        if name is None or array is None or array.size != max(shape, default=1):
            return None
        return derive(self.graph, name, array.reshape(shape), ".numbers")
