"""Recovers layers whose weights, or weights and inputs, are quantized."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from burn import dtypes
from burn_import.rewriting.arrays import derive
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope, with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.ops.dynamic_quantize import DynamicQuantizeConv
from burn_ir.ops.microsoft.blocks import MatMulNBits
from burn_ir.ops.microsoft.integer import DynamicQuantizeMatMul
from burn_ir.types import Array

#: The operators that begin the patterns.
SOURCES = frozenset({"MatMulNBits", "DynamicQuantizeLinear", "WeightQuantizedLinear"})
#: The position of the bias among the operands.
BIAS = {
    **dict.fromkeys(("DynamicQuantizeMatMul", "DynamicQuantizeConv"), 4),
    "MatMulNBits": 5,
    "WeightQuantizedLinear": 4,
}
#: Integer products of dynamically quantized inputs.
PRODUCTS = ("MatMulInteger", "ConvInteger")


def quantized_layers(graph: Graph) -> Graph:
    """Return ``graph`` with one node for each quantized layer.

    ``DynamicQuantizeMatMul`` and ``DynamicQuantizeConv`` replace
    ``DynamicQuantizeLinear``, ``MatMulInteger`` or ``ConvInteger``, a cast and the
    product with both scales: each layer quantizes its own input, as PyTorch's does.
    Scales and zero points of ``MatMulNBits`` become matrices, a row for each output. A
    sum with a stored vector becomes the bias if nothing else reads the product. Values
    are bit-identical.
    """
    if graph.operators.isdisjoint(SOURCES):
        return graph
    rewriter = _Rewriter(Dataflow(graph))
    nodes = [rewriter.rewrite(node) for node in graph.nodes]
    nodes = [n for n in nodes if rewriter.absorbed.isdisjoint(n.outputs)]
    return with_nodes(graph, nodes)


class _Rewriter:
    def __init__(self, flow: Dataflow) -> None:
        self.flow, self.graph = flow, flow.graph
        #: Layers without a bias, by their result.
        self.layers: dict[str, Node] = {}
        #: The results of layers that a sum replaces.
        self.absorbed: set[str] = set()

    def rewrite(self, node: Node) -> Node:
        """Return the layer that ``node`` is or ends, or ``node``."""
        new = node
        if isinstance(node.op, MatMulNBits):
            new = self.with_matrices(node)
        elif not node.op.domain and node.op.onnx == "Mul":
            new = self.dynamic_layer(node)
        elif not node.op.domain and node.op.onnx == "Add":
            new = self.with_bias(node)
        if new.op.onnx in BIAS and len(new.inputs) <= BIAS[new.op.onnx]:
            self.layers[new.output] = new
        return new

    def with_matrices(self, node: Node) -> Node:
        """Return ``node`` with a row of scales and zero points for each output."""
        rows = node.op.attrs()["N"]
        inputs = list(node.inputs)
        for position in (2, 3):
            name = inputs[position] if position < len(inputs) else None
            array = self.stored(name)
            if name is None or array is None or array.ndim == 2 or array.size % rows:
                continue
            inputs[position] = derive(
                self.graph, name, array.reshape(rows, -1), ".matrix"
            )
        scope, classes = self.scope_of(node)
        new = replace(node, inputs=tuple(inputs), scope=scope, classes=classes)
        return node if new == node else new

    def scope_of(self, node: Node) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the scope of a node, or of its readers if the quantizer lost it."""
        readers = self.flow.users.get(node.output, ())
        if node.scope or not readers:
            return node.scope, node.classes
        return common_scope(*readers)

    def stored(self, name: str | None) -> Array | None:
        return self.flow.stored(name)

    def dynamic_layer(self, node: Node) -> Node:
        """Return the layer that ends with ``node``, a product with the scales."""
        for total, factor in (node.inputs, node.inputs[::-1]):
            cast = self.flow.made_by(total, "Cast")
            product = cast and self.flow.made_by(cast.inputs[0], *PRODUCTS)
            scales = self.flow.made_by(factor, "Mul")
            if not cast or not product or not scales:
                continue
            source = self.flow.made_by(product.inputs[0], "DynamicQuantizeLinear")
            operands = source and self.operands(source, product, scales)
            if not source or not operands or not self.is_float(node, source):
                continue
            if not self.flow.are_inside([product, cast], node):
                continue
            # Quantizers name the other nodes after results, those of the graph too.
            is_conv = product.op.onnx == "ConvInteger"
            attrs = product.op.attrs()
            op = DynamicQuantizeConv(**attrs) if is_conv else DynamicQuantizeMatMul()
            new = replace(product, op=op, inputs=operands)
            return replace(new, outputs=node.outputs)
        return node

    def is_float(self, node: Node, source: Node) -> bool:
        """Return whether input and result of a layer are of float32."""
        types = self.graph.type(node.output), self.graph.type(source.inputs[0])
        return all(t is not None and t.dtype == dtypes.float32 for t in types)

    def operands(
        self, source: Node, product: Node, scales: Node
    ) -> tuple[str | None, ...] | None:
        """Return input, weight, scale and zero point of a layer; None if it is none."""
        _, scale, shift = source.outputs
        weight, x_shift, y_shift = (*product.inputs[1:], None, None)[:3]
        factors = [name for name in scales.inputs if name != scale]
        matrix, is_conv = self.stored(weight), product.op.onnx == "ConvInteger"
        if len(factors) != 1 or x_shift != shift or matrix is None:
            return None
        array, zeros = self.stored(factors[0]), self.stored(y_shift)
        if array is None or array.ndim > 1:
            return None
        if is_conv and array.shape or not is_conv and matrix.ndim != 2:
            return None
        if array.size not in (1, matrix.shape[1]):
            return None
        if y_shift is not None and zeros is None:
            return None
        has_shift = zeros is not None and bool(np.any(zeros))
        if has_shift and zeros is not None and zeros.shape != array.shape:
            return None
        rest = (y_shift,) if has_shift else ()
        return source.inputs[0], weight, factors[0], *rest

    def with_bias(self, node: Node) -> Node:
        """Return a layer with the stored vector that ``node`` adds, or ``node``."""
        for name, term in (node.inputs, node.inputs[::-1]):
            layer, array = self.layers.get(name or ""), self.stored(term)
            if layer is None or array is None or self.graph.uses[layer.output] != 1:
                continue
            t = self.graph.type(layer.output)
            if t is None or array.dtype != t.dtype:
                continue
            vector = self.bias_vector(layer, str(term), array)
            if vector is None or layer.output in self.flow.outputs:
                continue
            self.absorbed.add(layer.output)
            empty = (None,) * (BIAS[layer.op.onnx] - len(layer.inputs))
            scope, classes = common_scope(layer, node)
            inputs = (*layer.inputs, *empty, vector)
            new = replace(layer, inputs=inputs, outputs=node.outputs)
            return replace(new, scope=scope, classes=classes)
        return node

    def bias_vector(self, layer: Node, name: str, array: Array) -> str | None:
        """Return a stored term as the bias of a layer; None if it has other axes."""
        shape = self.flow.extents(layer.output)
        if not isinstance(layer.op, DynamicQuantizeConv):
            return name if shape and array.shape == shape[-1:] else None
        if len(shape) < 3 or array.ndim not in (len(shape), len(shape) - 1):
            return None
        if array.shape[-len(shape) + 1 :] != (shape[1],) + (1,) * (len(shape) - 2):
            return None
        if array.size != shape[1]:
            return None
        return derive(self.graph, name, array.reshape(-1), ".vector")
