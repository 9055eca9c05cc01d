"""``Gradient`` of ai.onnx.preview.training: first and second derivatives in source."""

from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from tests.modules import call, generate, import_file

TRAINING = "ai.onnx.preview.training"


def value(name: str, shape: list[int | str]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def gradient(
    xs: list[str], y: str, given: list[str], results: list[str]
) -> onnx.NodeProto:
    return helper.make_node("Gradient", given, results, domain=TRAINING, xs=xs, y=y)


def model(weight: NDArray[np.float32]) -> onnx.ModelProto:
    """Return d = (a @ w + b)^2, its derivatives at two points, and a second one."""
    nodes = [
        helper.make_node("MatMul", ["a", "w"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["c"]),
        helper.make_node("Mul", ["c", "c"], ["d"]),
        gradient(["a", "b"], "d", ["a", "b"], ["da", "db"]),
        gradient(["c"], "d", ["m"], ["dc"]),
        gradient(["a"], "da", ["a"], ["dda"]),
    ]
    results: list[tuple[str, list[int | str]]] = [
        ("d", ["n", 4]),
        ("da", ["n", 3]),
        ("db", [4]),
        ("dc", ["n", 4]),
        ("dda", ["n", 3]),
    ]
    graph = helper.make_graph(
        nodes,
        "main",
        [value("a", ["n", 3]), value("b", [4])],
        [value(name, shape) for name, shape in results],
        [numpy_helper.from_array(weight, "w")],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(TRAINING, 1)]
    return helper.make_model(graph, opset_imports=opsets)


def test_derivatives_are_functions_in_the_source(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    weight = rng.standard_normal((3, 4), np.float32)
    path = tmp_path / "derivatives.onnx"
    onnx.save(model(weight), path)
    module, name = generate(path, tmp_path)
    net = getattr(import_file(module), name).load()
    assert "ops.gradient(d, [a, b])" in module.read_text()
    for rows in (2, 5):
        a, b = (rng.standard_normal(s, np.float32) for s in ((rows, 3), (4,)))
        m = a @ weight
        c = m + b
        second = np.broadcast_to((2 * weight @ weight.T).sum(0), (rows, 3))
        expected = [c * c, 2 * c @ weight.T, (2 * c).sum(0), 2 * m, second]
        for actual, right in zip(call(net, [a, b]), expected, strict=True):
            np.testing.assert_allclose(actual, right, rtol=1e-4, atol=1e-5)
