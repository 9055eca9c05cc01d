"""What exporters write and mean where the words of the specification say otherwise."""

from __future__ import annotations

from dataclasses import replace

from burn_ir.raw import RawGraph, RawModel, RawNode

#: Frameworks that round a resized extent before they align its corners, as onnxruntime
#: does with every file; ONNX's own cases align those of the extent before rounding.
ROUNDING = ("pytorch", "tf2onnx", "paddle")


def as_meant(model: RawModel) -> RawModel:
    """``model`` with the attributes that its exporter means."""
    if not model.producer.lower().startswith(ROUNDING):
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
