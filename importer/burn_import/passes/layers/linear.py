"""Recovers ``nn.Linear`` from products with a constant matrix."""

from dataclasses import dataclass, field, replace

import numpy as np

from burn.dtypes import is_float
from burn_import.passes.layers.linear_pieces import linear_of_pieces, may_have_pieces
from burn_import.provenance.weight_owners import is_key
from burn_import.rewriting.arrays import derive
from burn_import.rewriting.dataflow import Dataflow
from burn_import.rewriting.graphs import common_scope, with_nodes
from burn_ir.graph import Graph, Node
from burn_ir.names import free_name
from burn_ir.ops.fused import Conv1D, Linear
from burn_ir.ops.shape import Reshape, Transpose
from burn_ir.types import Array


def linear(graph: Graph) -> Graph:
    """Return ``graph`` with ``Linear`` for products with constant weights.

    ``MatMul`` and ``Gemm`` are replaced. An ``Add`` of a constant with one element per
    column becomes the bias if nothing else reads the product, also behind a reshape of
    it; leading axes of extent 1 are dropped from the constant. Matrix and bias may be
    pieces of stored arrays. ``alpha`` and ``beta`` of ``Gemm`` are multiplied into the
    weights, and a scalar term becomes a bias vector. Results may differ by rounding.
    """
    flow = Dataflow(graph) if may_have_pieces(graph) else None
    rewriter = _Rewriter(graph, flow)
    for node in graph.nodes:
        rewriter.add(node)
    if not rewriter.has_changes:
        return graph
    absorbed = rewriter.absorbed
    nodes = [n for n in rewriter.nodes if absorbed.isdisjoint(n.outputs)]
    return with_nodes(graph, nodes)


@dataclass
class _Rewriter:
    graph: Graph
    #: The dataflow of ``graph`` if it may have pieces of stored arrays.
    flow: Dataflow | None = None
    nodes: list[Node] = field(default_factory=list)
    #: Every product without bias, by its result.
    products: dict[str, Node] = field(default_factory=dict)
    #: Every reshape of such a product, by its result.
    reshapes: dict[str, Node] = field(default_factory=dict)
    #: The results of products that were merged into another node.
    absorbed: set[str] = field(default_factory=set)
    has_changes: bool = False

    def add(self, node: Node) -> None:
        """Append ``node`` or its replacement."""
        new = self.rewrite(node)
        if new is not node:
            self.has_changes = True
        if isinstance(new.op, Linear | Conv1D) and len(new.inputs) == 2:
            self.products[new.output] = new
        if isinstance(new.op, Reshape) and new.inputs[0] in self.products:
            self.reshapes[new.output] = new
        self.nodes.append(new)

    def rewrite(self, node: Node) -> Node:
        if node.op.domain:
            return node
        if node.op.onnx == "MatMul":
            return self.product(node)
        if node.op.onnx == "Gemm":
            return self.gemm(node)
        return self.with_bias(node) if node.op.onnx == "Add" else node

    def stored_array(self, name: str | None) -> Array | None:
        """Return the array of a constant floating operand."""
        if name is None or name in self.graph.types or name not in self.graph.constants:
            return None
        array = self.graph.constants[name]
        return array if is_float(array.dtype) else None

    def product(self, node: Node) -> Node:
        x, weight = self.graph.type(node.inputs[0]), self.stored_array(node.inputs[1])
        if weight is None or weight.ndim != 2 or node.inputs[1] is None:
            return node
        if x is None or x.shape is None or len(x.shape) < 2:
            return node
        if self.is_kept(node.inputs[1]):
            return self.with_conv1d(node, [node.inputs[0], node.inputs[1]])
        transposed = self.derive(node.inputs[1], 1.0, transpose=True)
        return replace(node, op=Linear(), inputs=(node.inputs[0], transposed))

    def gemm(self, node: Node) -> Node:
        attrs = node.op.attrs()
        x, name, term = (*node.inputs, None)[:3]
        weight = self.stored_array(name)
        if weight is None or weight.ndim != 2 or name is None:
            return node
        outer = weight.shape[0 if attrs["transB"] else 1]
        bias = None if term is None else self.bias_vector(term, outer)
        if term is not None and bias is None:
            return node
        plain = attrs["alpha"] == 1 and (term is None or attrs["beta"] == 1)
        straight = not attrs["transA"] and not attrs["transB"]
        if plain and straight and self.is_kept(name):
            return self.with_conv1d(
                node, [x, name] if bias is None else [x, name, bias]
            )
        inputs = [x, self.derive(name, attrs["alpha"], not attrs["transB"])]
        if bias is not None:
            inputs.append(self.derive(bias, attrs["beta"], False))
        if attrs["transA"]:
            inputs[0] = self.transpose_operand(node)
        return replace(node, op=Linear(), inputs=tuple(inputs))

    def is_kept(self, name: str) -> bool:
        """Return whether the author's matrix has the layout of the product.

        PyTorch's exporters keep the key of a weight unless they transpose it, as they
        do for ``nn.Linear``.
        """
        producer = self.graph.producer
        is_pytorch_key = producer.startswith("pytorch") and is_key(producer, name)
        return is_pytorch_key and name not in self.graph.constants.source

    def with_conv1d(self, node: Node, inputs: list[str | None]) -> Node:
        """Return ``Conv1D`` if the matrix is a ``weight``, else ``node``."""
        if str(inputs[1]).rpartition(".")[2] != "weight":
            return node
        return replace(node, op=Conv1D(), inputs=tuple(inputs))

    def transpose_operand(self, node: Node) -> str:
        """Insert a transpose of the first operand; return its result."""
        names = (self.graph.types, self.graph.constants)
        name = free_name(f"{node.output}.turned", *names)
        op = Transpose(perm=(1, 0))
        self.nodes.append(replace(node, op=op, inputs=node.inputs[:1], outputs=(name,)))
        return name

    def bias_vector(self, name: str, outer: int) -> str | None:
        """Return the bias vector for the third operand of ``Gemm``; None if none."""
        array = self.stored_array(name)
        if array is not None and array.size == 1 and array.ndim <= 2 and outer != 1:
            same = np.full(outer, array.reshape(()), array.dtype)
            return derive(self.graph, name, same, f".repeated_{outer}")
        return self.vector(name, outer, 2)

    def vector(self, name: str | None, outer: int, rank: int) -> str | None:
        """Return a constant as a vector of ``outer`` elements; None if it is none."""
        array = self.stored_array(name)
        if array is None or name is None or not 0 < array.ndim <= rank:
            return None
        if array.shape != (1,) * (array.ndim - 1) + (outer,):
            return None
        return derive(self.graph, name, array.reshape(-1), ".vector")

    def with_bias(self, node: Node) -> Node:
        """Return a product with the stored term of a sum; other nodes as they are."""
        for name, term in (node.inputs, node.inputs[::-1]):
            reshape = self.reshapes.get(str(name))
            product = self.products.get(
                str(name if reshape is None else reshape.inputs[0])
            )
            if product is None or not self.is_read_once(product, reshape):
                continue
            bias = self.bias_of_sum(product, reshape, term)
            if bias is None:
                continue
            self.absorbed |= {product.output, str(name)}
            scope, classes = common_scope(product, node)
            layer = replace(
                node,
                op=product.op,
                inputs=(*product.inputs, bias),
                scope=scope,
                classes=classes,
            )
            return layer if reshape is None else self.reshaped(layer, reshape)
        return node if self.flow is None else linear_of_pieces(node, self.flow)

    def is_read_once(self, product: Node, reshape: Node | None) -> bool:
        """Return whether a product, and its reshape if any, have one reader each."""
        names = (
            [product.output] if reshape is None else [product.output, reshape.output]
        )
        return all(self.graph.uses[name] == 1 for name in names)

    def bias_of_sum(
        self, product: Node, reshape: Node | None, term: str | None
    ) -> str | None:
        """Return a term of a product, or of its reshape, as a bias; None if not one.

        The last axes of the reshape are those of the term and hold one row.
        """
        weight = self.stored_array(product.inputs[1])
        t = self.graph.type(product.output if reshape is None else reshape.output)
        if weight is None or t is None or t.shape is None:
            return None
        outer = weight.shape[0 if isinstance(product.op, Linear) else 1]
        if reshape is None:
            return self.vector(term, outer, len(t.shape))
        array = self.stored_array(term)
        if array is None or term is None or array.ndim > len(t.shape):
            return None
        shape = array.shape[next((n for n, e in enumerate(array.shape) if e != 1), 0) :]
        if array.size != outer or not shape or t.shape[-len(shape) :] != shape:
            return None
        return derive(self.graph, term, array.reshape(-1), ".vector")

    def reshaped(self, layer: Node, reshape: Node) -> Node:
        """Append ``layer``; return ``reshape`` of it with the result of ``layer``."""
        names = (self.graph.types, self.graph.constants)
        rows = free_name(f"{layer.output}.rows", *names)
        self.nodes.append(replace(layer, outputs=(rows,)))
        inputs = (rows, *reshape.inputs[1:])
        return replace(reshape, inputs=inputs, outputs=layer.outputs)

    def derive(self, name: str, factor: float, transpose: bool) -> str:
        """Return the name of a constant, transposed or scaled, stored once.

        The transpose of a transposed constant is the original.
        """
        constants = self.graph.constants
        array = constants[name].T if transpose else constants[name]
        suffix = ".T" if transpose else ""
        if factor != 1:
            suffix += f".times_{factor}"
            array = array * array.dtype.type(factor)
        return derive(self.graph, name, array, suffix)
