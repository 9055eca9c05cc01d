"""ONNX Runtime on a model of a single node: the judge of values."""

from typing import Any

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper


def run_node(
    op_type: str, inputs: list[Any], *, outputs: int = 1, opset: int = 21, **attrs: Any
) -> list[Any]:
    """Return what ONNX Runtime computes; an input of None is left out."""
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    given = [
        numpy_helper.from_array(np.asarray(x), name)
        for name, x in zip(names, inputs, strict=True)
        if name
    ]
    node = helper.make_node(op_type, names, results, **attrs)
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in given],
        [helper.make_empty_tensor_value_info(name) for name in results],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10
    )
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    feed = {t.name: numpy_helper.to_array(t) for t in given}
    found: list[Any] = session.run(None, feed)
    return found
