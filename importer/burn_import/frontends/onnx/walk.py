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


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of a graph and of the bodies in it."""
    yield from graph.node
    for body in bodies_in(graph.node):
        yield from body.node
