"""Dropout nodes of a model for inference as layers that are active in training."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain

import numpy as np

from burn_ir.order import node_reads
from burn_ir.raw import RawGraph, RawModel, RawNode
from burn_ir.types import Array

#: The first opset whose ``Dropout`` is for inference whatever its attributes.
_INFERENCE_ALONE = 7
#: The first opset with the ratio and the mode as operands.
_OPERANDS = 12
_DEFAULT_RATIO = 0.5


def with_dropout(model: RawModel) -> RawModel:
    """Return ``model`` with ``TrackedDropout`` for ``Dropout`` of known ratios.

    Nodes that are active in every call, and those whose mask is read, are not changed.
    """
    graph = _restored(model.graph, model.opsets.get("", 1), {})
    return replace(model, graph=graph, opsets={**model.opsets, "burn": 1})


def _restored(graph: RawGraph, opset: int, outer: Mapping[str, Array]) -> RawGraph:
    constants = {**outer, **graph.constants, **dict(_literals(graph))}
    reads = {*graph.outputs, *chain.from_iterable(map(node_reads, graph.nodes))}

    def of_node(node: RawNode) -> RawNode:
        if node.op_type != "Dropout" or node.domain:
            bodies = {
                key: _restored(body, opset, constants)
                for key, body in node.attrs.items()
                if isinstance(body, RawGraph)
            }
            return replace(node, attrs={**node.attrs, **bodies}) if bodies else node
        ratio = _ratio(node, opset, constants)
        if not ratio or reads.intersection(filter(None, node.outputs[1:])):
            return node
        attrs = {"ratio": ratio, "restored": 1}
        x, y = node.inputs[:1], node.outputs[:1]
        return replace(node, domain="burn", attrs=attrs, inputs=x, outputs=y)

    return replace(graph, nodes=tuple(map(of_node, graph.nodes)))


def _literals(graph: RawGraph) -> Iterator[tuple[str, Array]]:
    """Yield the arrays of ``Constant`` nodes, by the names of the results."""
    for node in graph.nodes:
        value = node.attrs.get("value") if node.op_type == "Constant" else None
        if isinstance(value, np.ndarray) and node.outputs[0] is not None:
            yield node.outputs[0], value


def _ratio(node: RawNode, opset: int, constants: Mapping[str, Array]) -> float | None:
    """Return the ratio of a node that is inactive in inference; None if unknown."""
    if opset < _OPERANDS:
        is_inactive = opset >= _INFERENCE_ALONE or node.attrs.get("is_test", 0)
        return float(node.attrs.get("ratio", _DEFAULT_RATIO)) if is_inactive else None
    operands = [*node.inputs[1:], None, None][:2]
    ratio, mode = (None if name is None else constants.get(name) for name in operands)
    if operands[1] is not None and (mode is None or mode.any()):
        return None
    if operands[0] is None:
        return _DEFAULT_RATIO
    return None if ratio is None or ratio.size != 1 else float(ratio.item())
