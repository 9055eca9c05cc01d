"""Outputs that jump: lower precision may move an operand across the jump."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
import onnx
from onnx import NodeProto, helper

from tests.fuzz.generator.builder import free_names

#: Operators that are not continuous in a floating operand.
DISCONTINUOUS = frozenset(
    {"ArgMax", "ArgMin", "Cast", "CastLike", "Ceil", "Equal", "Floor", "Greater"}
    | {"GreaterOrEqual", "Hardmax", "IsInf", "IsNaN", "Less", "LessOrEqual", "Mod"}
    | {"MaxUnpool", "NonMaxSuppression", "NonZero", "Range", "Round", "Shrink"}
    | {"Sign", "ThresholdedRelu", "TopK", "Unique", "Binarizer", "GridSample"}
    | {"DynamicQuantizeLinear", "QuantizeLinear", "RoiAlign", "MaxRoiPool"}
    | {"TreeEnsembleClassifier", "TreeEnsembleRegressor", "TreeEnsemble"}
    | {"LinearClassifier", "SVMClassifier"}
)


#: Types in which lower precision changes nothing.
EXACT = frozenset(
    helper.np_dtype_to_tensor_dtype(np.dtype(name))
    for name in (
        "bool",
        "O",
        *(f"{s}int{b}" for s in ("", "u") for b in (8, 16, 32, 64)),
    )
)


def jumping_outputs(model: onnx.ModelProto) -> list[bool]:
    """Return whether each output follows from an operator that is not continuous.

    So it is of floating operands. Those of nodes in bodies may be floating.
    """
    exact = _exact_values(model)
    jumping: set[str] = set()
    for node in model.graph.node:
        if jumping.intersection(free_names([node])) or _jumps(node, exact):
            jumping.update(node.output)
    return [output.name in jumping for output in model.graph.output]


def _exact_values(model: onnx.ModelProto) -> set[str]:
    """The values of the graph that are known not to be floating."""
    try:
        graph = onnx.shape_inference.infer_shapes(model).graph
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        graph = model.graph
    kinds = {t.name: t.data_type for t in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        kinds[value.name] = value.type.tensor_type.elem_type
    return {name for name, kind in kinds.items() if kind in EXACT}


def _jumps(node: NodeProto, exact: Collection[str]) -> bool:
    if node.op_type in DISCONTINUOUS and any(n not in exact for n in node.input if n):
        return True
    bodies = [a.g.node for a in node.attribute if a.HasField("g")]
    return any(map(_is_discontinuous, bodies))


def _is_discontinuous(nodes: Iterable[NodeProto]) -> bool:
    """Return whether one of the nodes, or of the nodes in their bodies, is."""
    return any(_jumps(node, ()) for node in nodes)
