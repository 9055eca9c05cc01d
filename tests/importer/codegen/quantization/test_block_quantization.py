"""Products with matrices that are dequantized by blocks are ``nn.QuantizedLinear``."""

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import burn
from tests.modules import Array, generate, import_file, onnxruntime_outputs

INNER, OUTER, BLOCK = 40, 6, 16
DTYPES = {
    "int4": (ml_dtypes.int4, TensorProto.INT4, (-8, 8)),
    "uint4": (ml_dtypes.uint4, TensorProto.UINT4, (0, 16)),
    "int8": (np.int8, TensorProto.INT8, (-128, 128)),
    "uint8": (np.uint8, TensorProto.UINT8, (0, 256)),
}


def model(kind: str, has_zero_points: bool, straight: bool) -> onnx.ModelProto:
    """Return a product whose last block has fewer elements, with a bias."""
    rng = np.random.default_rng(3)
    dtype, onnx_dtype, limits = DTYPES[kind]
    axis = 1 if straight else 0
    shape, blocks = [INNER, OUTER], [-(-INNER // BLOCK), OUTER]
    if straight:
        shape, blocks = shape[::-1], blocks[::-1]
    arrays: dict[str, Array] = {
        "fc.weight": rng.integers(*limits, shape).astype(dtype),
        "fc.weight_scales": rng.uniform(0.01, 0.1, blocks).astype(np.float32),
    }
    if has_zero_points:
        zeros = rng.integers(*limits, blocks).astype(dtype)
        arrays["fc.weight_zero_points"] = zeros
    operands = [*arrays]
    arrays["fc.bias"] = rng.normal(size=OUTER).astype(np.float32)
    nodes = [
        helper.make_node(
            "DequantizeLinear", operands, ["w"], axis=axis, block_size=BLOCK
        )
    ]
    if straight:
        nodes += [helper.make_node("Gemm", ["x", "w", "fc.bias"], ["y"], transB=1)]
    else:
        nodes += [helper.make_node("MatMul", ["x", "w"], ["product"])]
        nodes += [helper.make_node("Add", ["product", "fc.bias"], ["y"])]
    graph = helper.make_graph(
        nodes,
        "blocks",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", INNER])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", OUTER])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    opsets = [helper.make_opsetid("", 21)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.parametrize("straight", [False, True], ids=["MatMul", "Gemm"])
@pytest.mark.parametrize("zero_points", [False, True], ids=["symmetric", "shifted"])
@pytest.mark.parametrize("kind", DTYPES)
def test_blocks_are_a_layer(
    tmp_path: Path, kind: str, zero_points: bool, straight: bool
) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model(kind, zero_points, straight), path)
    module, name = generate(path, tmp_path)
    text = module.read_text()
    assert f"nn.QuantizedLinear({INNER}, {OUTER}" in text
    assert "dequantize" not in text
    net = getattr(import_file(module), name).load()
    x = np.random.default_rng(4).normal(size=(3, INNER)).astype(np.float32)
    (expected,) = onnxruntime_outputs(path, {"x": x})
    np.testing.assert_allclose(
        net(burn.tensor(x)).numpy(), expected, rtol=1e-4, atol=1e-4
    )
