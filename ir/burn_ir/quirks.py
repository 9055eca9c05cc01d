"""Corrections for exporters whose files deviate from the specification."""

from __future__ import annotations

from dataclasses import replace

from burn_ir.raw import RawGraph, RawModel, RawNode

#: The producer of ONNX's own test cases. Two of Resize align the corners of a size
#: before it is rounded. The specification speaks of the length of the resized tensor,
#: an integer, as onnxruntime and PyTorch compute it. All other files mean that,
#: including those that a tool has rewritten under its own name.
ONNX_CASES = "backend-test"


def with_exporter_corrections(model: RawModel) -> RawModel:
    """Return ``model`` with the attributes that its exporter intends."""
    if model.producer.startswith(ONNX_CASES):
        return model
    return replace(model, graph=_graph(model.graph))


def _graph(graph: RawGraph) -> RawGraph:
    nodes = tuple(map(_node, graph.nodes))
    unchanged = all(a is b for a, b in zip(nodes, graph.nodes, strict=True))
    return graph if unchanged else replace(graph, nodes=nodes)


def _node(node: RawNode) -> RawNode:
    key = "coordinate_transformation_mode"
    attrs = {
        name: _graph(value) if isinstance(value, RawGraph) else value
        for name, value in node.attrs.items()
    }
    if node.op_type == "Resize" and attrs.get(key) == "align_corners":
        attrs[key] = "pytorch_align_corners"
    if all(attrs[name] is value for name, value in node.attrs.items()):
        return node
    return replace(node, attrs=attrs)
