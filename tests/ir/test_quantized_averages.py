"""Averages of quantised numbers that are half way between two results."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from burn import Cpu, Tensor
from burn_ir.ops.microsoft.quantize import QLinearAveragePool, QLinearGlobalAveragePool

DTYPES = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8}
NAMES = ["x", "x_scale", "x_zero_point", "y_scale", "y_zero_point"]
POOLS = {
    "whole images": QLinearGlobalAveragePool(),
    "windows": QLinearAveragePool(kernel_shape=(2, 1)),
    "windows of whole images": QLinearAveragePool(kernel_shape=(2, 2)),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", POOLS)
def test_halves_are_rounded_as_by_onnxruntime(case: str, dtype: str) -> None:
    op = POOLS[case]
    attrs = {k: v for k, v in op.attrs().items() if k == "kernel_shape"}
    rng = np.random.default_rng(3)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = rng.integers(low, high, (1, 500, 2, 2), endpoint=True).astype(dtype)
    scale = np.array(0.037, np.float32)
    zero, odd = np.array(low + 3, dtype), np.array(low + 7, dtype)
    operands = [x, scale, zero, scale, odd]
    kinds = [DTYPES[dtype] if a.dtype == dtype else 1 for a in operands]
    infos = [
        helper.make_tensor_value_info(name, kind, a.shape)
        for name, kind, a in zip(NAMES, kinds, operands, strict=True)
    ]
    name = type(op).__name__
    node = helper.make_node(name, NAMES, ["y"], domain="com.microsoft", **attrs)
    output = helper.make_tensor_value_info("y", DTYPES[dtype], None)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(
        helper.make_graph([node], "pool", infos, [output]),
        opset_imports=opsets,
        ir_version=8,
    )
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (expected,) = session.run(None, dict(zip(NAMES, operands, strict=True)))
    got = op.lower(*(Tensor(a, Cpu()) for a in operands))
    np.testing.assert_array_equal(got.data, expected)
