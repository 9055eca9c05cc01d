"""Transposed matrices without a key are named after the biases beside them."""

from pathlib import Path

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu
from burn.box import Parameter
from tests.importer.structure.scoped_net import ScopedNet, check_import


def projection(net: ScopedNet, bias: str, x: str, matrix: str = "") -> str:
    """Append a projection of [2, 3, 4] by a transposed matrix, and return its result.

    PyTorch's exporter calls such a matrix ``onnx::MatMul_`` and a number.
    """
    scope, _, _ = bias.rpartition(".")
    matrix = matrix or f"onnx::MatMul_{100 + len(net.weights)}"
    y = net.run("MatMul", scope, x, net.weight(matrix, 4, 4))
    return net.run("Add", scope, net.weight(bias, 4), y)


def test_a_matrix_beside_a_bias_is_a_parameter(tmp_path: Path) -> None:
    net = ScopedNet()
    x = projection(net, "attention.in_proj_bias", net.input("x", 2, 3, 4))
    x = net.run("Add", "attention", net.run("Tanh", "attention", x), x)
    matrix = next(name for name in net.weights if name.startswith("onnx::"))
    module = check_import(tmp_path, net.model(x), net.feeds(), flat=False).module
    weight = dict(module.boxes())["attention.in_proj_weight"]
    assert isinstance(weight, Parameter)
    np.testing.assert_array_equal(weight.value.numpy(), net.weights[matrix].T)
    module.to(Autodiff(Cpu()))
    feed = burn.tensor(np.ones((2, 3, 4), np.float32), Autodiff(Cpu()))
    assert callable(module)
    gradient = module(feed).sum().backward()[weight]
    assert gradient.shape == (4, 4) and np.abs(gradient.numpy()).max() > 0


@pytest.mark.parametrize("case", ["several biases", "the key is another array's"])
def test_other_matrices_have_no_such_name(tmp_path: Path, case: str) -> None:
    net = ScopedNet()
    x = net.input("x", 2, 3, 4)
    y = projection(net, "attention.q_bias", x, "onnx::MatMul_100")
    if case == "several biases":
        y = net.run(
            "Add",
            "attention",
            y,
            projection(net, "attention.k_bias", x, "onnx::MatMul_100"),
        )
    else:
        y = net.run("Mul", "attention", y, net.weight("attention.q_weight", 4))
    x = net.run("Add", "attention", net.run("Tanh", "attention", y), y)
    actual = check_import(tmp_path, net.model(x), net.feeds(), flat=False)
    names = {"attention.q_weight", "attention.k_weight"} & actual.keys
    assert names == {"attention.q_weight"} & set(net.weights)
