"""Models in which onnxruntime writes over nothing that is read again.

Its BatchNormalization writes running statistics over ``input_mean`` and ``input_var``:
stored numbers, inputs of the graph, and what other nodes or the next round of a loop
read. Here they are copied before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx
from onnx import NodeProto, helper


def with_copied_statistics(model: onnx.ModelProto) -> onnx.ModelProto:
    """``model`` with copies of the running statistics that nodes update.

    An Identity may have the place of its operand in memory, a Concat of one operand
    has not.
    """
    if not any(_updates(node) for node in _nodes(model)):
        return model
    result = onnx.ModelProto()
    result.CopyFrom(model)
    for part in (result.graph, *result.functions):
        _copy_statistics(part.node)
    return result


def _nodes(model: onnx.ModelProto) -> Iterator[NodeProto]:
    for part in (model.graph, *model.functions):
        yield from _inner_nodes(part.node)


def _inner_nodes(nodes: Any) -> Iterator[NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            yield from _inner_nodes(attribute.g.node)


def _updates(node: NodeProto) -> bool:
    """Return whether a batch normalization also returns its running statistics."""
    return node.op_type == "BatchNormalization" and len(node.output) > 1


def _copy_statistics(nodes: Any) -> None:
    kept: list[NodeProto] = []
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _copy_statistics(attribute.g.node)
        if _updates(node):
            for place in (3, 4):
                given = node.input[place]
                node.input[place] = f"{node.output[0]}.before.{place}"
                names = [given], [node.input[place]]
                kept.append(helper.make_node("Concat", *names, axis=0))
        kept.append(node)
    copies = [_copy(node) for node in kept]
    del nodes[:]
    nodes.extend(copies)


def _copy(node: NodeProto) -> NodeProto:
    result = NodeProto()
    result.CopyFrom(node)
    return result
