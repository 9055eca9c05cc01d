"""One-node models in onnxruntime: the judge of values."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

Array = np.ndarray[Any, Any]


def run_node(
    op: str, *inputs: Array | None, opset: int = 17, outputs: int = 1, **attributes: Any
) -> list[Array]:
    """The results of one ONNX node; ``None`` stands for an input left out."""
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
    model = onnx.shape_inference.infer_shapes(model)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    feed = {n: x for n, x in zip(names, inputs, strict=True) if x is not None}
    found: list[Array] = session.run(None, feed)
    return found


def _info(name: str, x: Array) -> Any:
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    return helper.make_tensor_value_info(name, kind, x.shape)


def normal(*shape: int, seed: int = 0) -> Array:
    """Normal float32 values."""
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
