"""Products with a named matrix that become ``Conv1D``, and those that do not."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from burn import Tensor
from burn.backend.cpu import HOST
from burn_import.frontends.onnx import read
from burn_import.passes.layers.linear import linear
from burn_ir import build
from burn_ir.evaluate import evaluate
from tests.importer.onnx_files import saved
from tests.importer.torch_files import drawn, exported, node


def gemm(weight: str, *bias: str, **attrs: Any) -> list[onnx.NodeProto]:
    return [node("Gemm", " ".join(["x", weight, *bias]), "y", "h/c", **attrs)]


def product(weight: str, *rest: onnx.NodeProto) -> list[onnx.NodeProto]:
    return [node("MatMul", f"x {weight}", "p", "h/c"), *rest]


ADD = node("Add", "p h.c.bias", "y", "h/c")
RELU = node("Relu", "p", "y", "h")
DOUBLE = [node("Mul", "p p", "q", "h"), node("Add", "q h.c.bias", "y", "h")]
ROWS = node("Add", "p h.c.rows", "y", "h/c")

CASES = {
    "a matrix and a vector": (gemm("h.c.weight", "h.c.bias"), ["Conv1D"]),
    "no vector": (gemm("h.c.weight"), ["Conv1D"]),
    "a product": (product("h.c.weight", RELU), ["Conv1D", "Relu"]),
    "a product and a vector": (product("h.c.weight", ADD), ["Conv1D"]),
    "a turned matrix": (gemm("h.c.turned.weight", "h.c.bias", transB=1), ["Linear"]),
    "a factor": (gemm("h.c.weight", "h.c.bias", alpha=2.0), ["Linear"]),
    "a factor of the vector": (gemm("h.c.weight", "h.c.bias", beta=0.5), ["Linear"]),
    "no name": (gemm("onnx::Gemm_12", "h.c.bias"), ["Linear"]),
    "no name, a product": (product("val_12", ADD), ["Linear"]),
    "no layer's name": (product("h.c.proj", ADD), ["MatMul", "Add"]),
    "a matrix of biases": (product("h.c.weight", ROWS), ["Conv1D", "Add"]),
    "read twice": (product("h.c.weight", *DOUBLE), ["Conv1D", "Mul", "Add"]),
}


def weights(nodes: list[onnx.NodeProto]) -> dict[str, np.ndarray[Any, Any]]:
    shapes = {"h.c.bias": (4,), "h.c.rows": (5, 4), "h.c.turned.weight": (4, 3)}
    read_names = {name for each in nodes for name in each.input} - {"x", "p", "q"}
    return {n: drawn(*shapes.get(n, (3, 4))) for n in sorted(read_names)}


@pytest.mark.parametrize("title", CASES)
@pytest.mark.parametrize("rows", [5, 1])
def test_conv1d(title: str, rows: int, tmp_path: Path) -> None:
    nodes, expected = CASES[title]
    rows = 5 if title == "a matrix of biases" else rows
    proto = exported(nodes, weights(nodes), [rows, 3])
    before = build(read(saved(tmp_path / "model.onnx", proto)))
    after = linear(before)
    assert [each.op.onnx for each in after.nodes] == expected
    x = Tensor(drawn(rows, 3, seed=4), HOST)
    actual, wanted = (evaluate(graph, [x])[0].numpy() for graph in (after, before))
    np.testing.assert_allclose(actual, wanted, rtol=1e-6, atol=1e-6)


def test_other_programs_do_not_name_layouts(tmp_path: Path) -> None:
    nodes, _ = CASES["a matrix and a vector"]
    proto = exported(nodes, weights(nodes), [5, 3])
    proto.producer_name = "paddle"
    after = linear(build(read(saved(tmp_path / "model.onnx", proto))))
    assert [each.op.onnx for each in after.nodes] == ["Linear"]
