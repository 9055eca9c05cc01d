"""Matrices that an exporter transposed are parameters in every dtype of a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import burn
from burn_import import Options, load
from tests.importer.onnx_files import saved
from tests.importer.roles.checks import state_of
from tests.importer.torch_files import drawn, exported, node
from tests.modules import onnxruntime_outputs

X = drawn(2, 3, seed=9)
WEIGHTS = {"a.bias": drawn(5), "onnx::MatMul_20": drawn(3, 5)}
WEIGHTS["onnx::MatMul_21"] = drawn(5, 2)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Write a linear layer with a bias, and one without in a list, as exported."""
    nodes = [
        node("MatMul", "x onnx::MatMul_20", "m", "a"),
        node("Add", "m a.bias", "h", "a"),
        node("Tanh", "h", "t", ""),
        node("MatMul", "t onnx::MatMul_21", "y", "body/2"),
    ]
    return saved(tmp_path / "model.onnx", exported(nodes, WEIGHTS, [2, 3]))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_transposed_matrices_stay_parameters(path: Path, dtype: str) -> None:
    model = load(path, Options(dtype=dtype))
    state = state_of(model)
    transposed = {"a.weight": "onnx::MatMul_20", "body.2.weight": "onnx::MatMul_21"}
    assert state.parameters == {"a.bias", *transposed} == set(state.arrays)
    for key, name in transposed.items():
        expected = WEIGHTS[name].T.astype(getattr(burn, dtype))
        np.testing.assert_array_equal(state.arrays[key], expected)


def test_their_gradients_are_those_in_float32(path: Path) -> None:
    (expected,) = onnxruntime_outputs(path, {"x": X})
    gradients = {}
    for dtype in ("float32", "float64"):
        model = load(path, Options(dtype=dtype)).to(burn.Autodiff(burn.Cpu()))
        assert callable(model)
        y = model(burn.tensor(X.astype(dtype)))
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-5, atol=1e-6)
        result = (y * y).sum().backward()
        parameters = dict(model.parameters())
        gradients[dtype] = {key: result[box].numpy() for key, box in parameters.items()}
    assert len(gradients["float64"]) == 3
    for key, gradient in gradients["float32"].items():
        np.testing.assert_allclose(gradients["float64"][key], gradient, rtol=1e-4)
