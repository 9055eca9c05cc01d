"""Iteration over protobuf messages of ONNX with the graphs inside of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx


def graphs_of(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """Yield the graph of a model and the bodies in it and in its functions."""
    yield model.graph
    yield from bodies_in(model.graph.node)
    for function in model.functions:
        yield from bodies_in(function.node)


def bodies_in(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.GraphProto]:
    """Yield the bodies of nodes, and the bodies in these, without recursion."""
    waiting = list(nodes)
    while waiting:
        for attribute in waiting.pop().attribute:
            single = [attribute.g] if attribute.HasField("g") else []
            for body in (*single, *attribute.graphs):
                yield body
                waiting += body.node


def tensors_of(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield the stored tensors of a model: initializers and attributes of nodes."""
    nodes = [node for function in model.functions for node in function.node]
    for graph in graphs_of(model):
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
        nodes += graph.node
    for attribute in (attribute for node in nodes for attribute in node.attribute):
        yield from (attribute.t, *attribute.tensors)
        for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
            yield from (sparse.values, sparse.indices)


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of a graph and of the bodies in it."""
    yield from graph.node
    for body in bodies_in(graph.node):
        yield from body.node
