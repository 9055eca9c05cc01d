"""One-node models in onnxruntime: the reference for values."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

Array = np.ndarray[Any, Any]


def run_node(
    op: str, *inputs: Array | None, opset: int = 17, outputs: int = 1, **attributes: Any
) -> list[Array]:
    """The results of one ONNX node; ``None`` stands for an input left out."""
    model = one_node(op, inputs, opset, outputs, attributes)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    result: list[Array] = session.run(None, _feed(inputs))
    return result


def by_reference(
    op: str, *inputs: Array | None, opset: int = 17, outputs: int = 1, **attributes: Any
) -> list[Array]:
    """As :func:`run_node`, by ONNX's reference implementation."""
    model = one_node(op, inputs, opset, outputs, attributes)
    results = ReferenceEvaluator(model).run(None, _feed(inputs))
    return [np.asarray(y) for y in results]


def _feed(inputs: Sequence[Array | None]) -> dict[str, Array]:
    return {f"x{i}": x for i, x in enumerate(inputs) if x is not None}


def one_node(
    op: str,
    inputs: Sequence[Array | None],
    opset: int,
    outputs: int,
    attributes: Mapping[str, Any],
) -> onnx.ModelProto:
    """The model of one node whose operands are like ``inputs``."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    outs = [f"y{i}" for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op, names, outs, **attributes)],
        "one",
        [_info(n, x) for n, x in zip(names, inputs, strict=True) if x is not None],
        [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in outs],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 10
    return onnx.shape_inference.infer_shapes(model)


def _info(name: str, x: Array) -> Any:
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    return helper.make_tensor_value_info(name, kind, x.shape)


def normal(*shape: int, seed: int = 0) -> Array:
    """Normal float32 values."""
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
