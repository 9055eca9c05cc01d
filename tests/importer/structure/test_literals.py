"""Stored arrays that become calls; those with non-finite numbers are kept."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import burn
from burn_import.loading import load


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_numbers_that_are_not_finite(
    tmp_path: Path, odd: float, position: int, dtype: type[np.floating]
) -> None:
    array = np.array([1.0839, 0.68164, 0.1234567], dtype)
    array[position] = odd
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    constant = helper.make_node(
        "Constant", [], ["c"], value=numpy_helper.from_array(array)
    )
    graph = helper.make_graph(
        [constant, helper.make_node("Mul", ["x", "c"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", kind, ["n", 3])],
        [helper.make_tensor_value_info("y", kind, ["n", 3])],
    )
    opset = helper.make_opsetid("", 18)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=9)
    onnx.save(model, tmp_path / "m.onnx")
    module: Any = load(tmp_path / "m.onnx")
    result = module(burn.tensor(np.ones((2, 3), dtype)))
    np.testing.assert_array_equal(result.numpy(), np.stack([array, array]))
