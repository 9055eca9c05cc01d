"""Quantized results at ties between two integers, rounded as by onnxruntime."""

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from burn import Cpu, Tensor
from burn_ir.ops.microsoft.quantize import (
    QLinearAdd,
    QLinearAveragePool,
    QLinearGlobalAveragePool,
    QLinearMul,
)

DTYPES = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8}
POOLS = {
    "whole images": QLinearGlobalAveragePool(),
    "windows": QLinearAveragePool(kernel_shape=(2, 1)),
    "windows of whole images": QLinearAveragePool(kernel_shape=(2, 2)),
}


def of_onnxruntime(op: Any, operands: list[Any], dtype: str) -> Any:
    """Return onnxruntime's results for a node of ``op``."""
    attrs = {k: v for k, v in op.attrs().items() if k == "kernel_shape"}
    names = [f"x{i}" for i in range(len(operands))]
    kinds = [DTYPES[dtype] if a.dtype == dtype else 1 for a in operands]
    infos = [
        helper.make_tensor_value_info(name, kind, a.shape)
        for name, kind, a in zip(names, kinds, operands, strict=True)
    ]
    name = type(op).__name__
    node = helper.make_node(name, names, ["y"], domain="com.microsoft", **attrs)
    output = helper.make_tensor_value_info("y", DTYPES[dtype], None)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "halves", infos, [output])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, dict(zip(names, operands, strict=True)))[0]


def numbers(dtype: str, shape: tuple[int, ...]) -> Any:
    """Return random integers from the whole range of a dtype."""
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    rng = np.random.default_rng(3)
    return rng.integers(low, high, shape, endpoint=True).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", POOLS)
def test_averages(case: str, dtype: str) -> None:
    op, low = POOLS[case], np.iinfo(dtype).min
    scale = np.array(0.037, np.float32)
    zero, odd = np.array(low + 3, dtype), np.array(low + 7, dtype)
    operands = [numbers(dtype, (1, 500, 2, 2)), scale, zero, scale, odd]
    got = op.lower(*(Tensor(a, Cpu()) for a in operands))
    np.testing.assert_array_equal(got.data, of_onnxruntime(op, operands, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shift", (90, 91))
@pytest.mark.parametrize("op", (QLinearAdd(), QLinearMul()))
def test_sums_and_products(op: Any, shift: int, dtype: str) -> None:
    x, y = numbers(dtype, (2, 100, 3))
    low = np.iinfo(dtype).min
    scales = [np.array(s, np.float32) for s in (0.25, 0.5, 1.0)]
    if isinstance(op, QLinearMul):  # most products are too large otherwise
        scales[2] = np.array(16, np.float32)
    near, far = np.array(low + 120, dtype), np.array(low + shift, dtype)
    operands = [x, scales[0], near, y, scales[1], near, scales[2], far]
    got = op.lower(*(Tensor(a, Cpu()) for a in operands))
    np.testing.assert_array_equal(got.data, of_onnxruntime(op, operands, dtype))
