"""Models in float16 and float64: their weights keep their dtype."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import burn
from burn_import import load
from burn_import.pipeline import import_model
from tests.modules import onnxruntime_outputs


def mlp(dtype: Any, kind: int) -> onnx.ModelProto:
    rng = np.random.default_rng(3)
    arrays = {
        "conv.weight": rng.standard_normal((4, 2, 3, 2)),
        "conv.bias": rng.standard_normal(4),
        "head.weight": rng.standard_normal((3, 4)),
        "head.bias": rng.standard_normal(3),
    }
    nodes = [
        helper.make_node("Conv", ["x", "conv.weight", "conv.bias"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("ReduceMean", ["r"], ["m"], axes=[2, 3], keepdims=0),
        helper.make_node("Gemm", ["m", "head.weight", "head.bias"], ["y"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "half",
        [helper.make_tensor_value_info("x", kind, ["batch", 2, 5, 4])],
        [helper.make_tensor_value_info("y", kind, ["batch", 3])],
        [numpy_helper.from_array(a.astype(dtype), n) for n, a in arrays.items()],
    )
    opsets = [helper.make_opsetid("", 13)]
    return helper.make_model(graph, ir_version=8, opset_imports=opsets)


@pytest.mark.parametrize(
    ("dtype", "kind", "tolerance"),
    [
        (np.float16, TensorProto.FLOAT16, 5e-3),
        (np.float64, TensorProto.DOUBLE, 1e-5),
    ],
)
def test_weights_keep_their_dtype(
    tmp_path: Path, dtype: Any, kind: int, tolerance: float
) -> None:
    path = tmp_path / "half.onnx"
    onnx.save(mlp(dtype, kind), path)
    compiled = import_model(path)
    assert {a.dtype for _, a in compiled.weights} == {np.dtype(dtype)}
    name = f"dtype=burn.{np.dtype(dtype)}"
    assert f"nn.Conv2d(2, 4, kernel_size=(3, 2), {name})" in compiled.text
    assert f"nn.Linear(4, 3, {name})" in compiled.text
    x = np.random.default_rng(5).standard_normal((3, 2, 5, 4)).astype(dtype)
    model: Any = load(path)
    actual = model(burn.tensor(x)).numpy()
    if dtype == np.float64:  # onnxruntime has no such convolution: float32 is close
        onnx.save(mlp(np.float32, TensorProto.FLOAT), path)
        x = x.astype(np.float32)
    (expected,) = onnxruntime_outputs(path, {"x": x})
    assert actual.dtype == dtype
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
