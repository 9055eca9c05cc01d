"""Nodes that request derivatives, with the differentiated function as a subgraph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from burn_ir.order import node_reads
from burn_ir.raw import RawGraph, RawNode
from burn_ir.types import Type

#: (domain, operator) whose attributes name values of the surrounding graph.
GRADIENT = ("ai.onnx.preview.training", "Gradient")


def with_functions(graph: RawGraph) -> RawGraph:
    """Add a subgraph ``function`` to every node that requests derivatives.

    It holds the nodes that lead from the values in ``xs`` and ``zs`` to ``y``,
    including other such nodes: derivatives of derivatives.
    """
    if not any(map(_requests_derivatives, graph.nodes)):
        return graph
    producers = {name: n for n in graph.nodes for name in n.outputs if name is not None}
    nodes = tuple(_with_function(node, producers) for node in graph.nodes)
    return replace(graph, nodes=nodes)


def _requests_derivatives(node: RawNode) -> bool:
    return (node.domain, node.op_type) == GRADIENT and "function" not in node.attrs


def _with_function(node: RawNode, producers: Mapping[str, RawNode]) -> RawNode:
    if not _requests_derivatives(node):
        return node
    names = (*node.attrs.get("xs", ()), *(node.attrs.get("zs") or ()))
    result = str(node.attrs.get("y", ""))
    inner: dict[int, RawNode] = {}
    wanted = [result]
    while wanted:
        name = wanted.pop()
        maker = producers.get(name)
        if name in names or maker is None or id(maker) in inner or maker is node:
            continue
        inner[id(maker)] = _with_function(maker, producers)
        wanted += node_reads(inner[id(maker)])
    inputs = {name: Type(np.dtype("V"), None) for name in names}
    body = RawGraph(result, inputs, (result,), tuple(inner.values()), {})
    return replace(node, attrs={**node.attrs, "function": body})
