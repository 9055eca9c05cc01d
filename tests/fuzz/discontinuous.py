"""Outputs that jump: lower precision may move an operand across the jump."""

from __future__ import annotations

from collections.abc import Iterable

import onnx
from onnx import NodeProto

from tests.fuzz.generator.builder import free_names

#: Operators that are not continuous in a floating operand.
DISCONTINUOUS = frozenset(
    {"ArgMax", "ArgMin", "Cast", "CastLike", "Ceil", "Equal", "Floor", "Greater"}
    | {"GreaterOrEqual", "Hardmax", "If", "IsInf", "Less", "LessOrEqual", "Mod"}
    | {"MaxUnpool", "NonMaxSuppression", "NonZero", "Range", "Round", "Shrink"}
    | {"Sign", "ThresholdedRelu", "TopK", "Unique", "Binarizer", "GridSample"}
    | {"DynamicQuantizeLinear", "QuantizeLinear", "RoiAlign", "MaxRoiPool"}
    | {"TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble"}
    | {"LinearClassifier", "SVMClassifier"}
)


def jumping_outputs(model: onnx.ModelProto) -> list[bool]:
    """Whether each output follows from an operator that is not continuous."""
    jumping: set[str] = set()
    for node in model.graph.node:
        if jumping.intersection(free_names([node])) or _is_discontinuous([node]):
            jumping.update(node.output)
    return [output.name in jumping for output in model.graph.output]


def _is_discontinuous(nodes: Iterable[NodeProto]) -> bool:
    """Whether one of the nodes, or of the nodes in their bodies, is."""
    return any(
        node.op_type in DISCONTINUOUS
        or any(_is_discontinuous(a.g.node) for a in node.attribute if a.HasField("g"))
        for node in nodes
    )
