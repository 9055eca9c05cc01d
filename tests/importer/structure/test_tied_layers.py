"""Layers on the weights of other layers, and branches named like layers."""

from functools import partial
from pathlib import Path

import numpy as np
from onnx import TensorProto

from tests.importer.structure.scoped_net import ScopedNet, check_import

WEIGHTS = ("weight", "bias")


def test_ties_in_a_sequence(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.linear("steps.0", net.input("x", 2, 4), 4, 4)
    x = net.run("Gemm", "steps.1", x, "steps.0.weight", "steps.0.bias", transB=1)
    actual = check_import(tmp_path, net.model(x), net.feeds())
    assert actual.keys == {f"steps.{i}.{name}" for i in (0, 1) for name in WEIGHTS}
    assert "self.steps[1].weight = self.steps[0].weight" in actual.source


def test_a_table_and_its_projection_without_scopes(tmp_path: Path) -> None:
    net = ScopedNet()
    table = net.weight("embeddings.weight", 11, 4)
    ids = net.run("Cast", "", net.input("x", "n", 3), to=TensorProto.INT64)
    ids = net.run("Abs", "", ids)
    x = net.run("Tanh", "", net.run("Gather", "", table, ids))
    x = net.run("MatMul", "", x, net.run("Transpose", "", table, perm=[1, 0]))
    actual = check_import(tmp_path, net.model(x), net.feeds())
    assert "self.embeddings = nn.Embedding(11, 4)" in actual.source
    assert "self.linear.weight = self.embeddings.weight" in actual.source


def test_a_branch_beside_a_layer_of_its_name(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.input("x", 2, 4)
    x = net.run("Tanh", "block", net.linear("block.then", x, 4, 4))
    total = net.run("ReduceSum", "block", x, keepdims=0)
    above = net.run("Greater", "block", total, net.stored("limit", np.float32(0.5)))

    def branch(number: int) -> list[str]:
        y = net.linear(f"block.b{number}", x, 4, 4)
        for op in ("Tanh", "Abs", "Sqrt", "Sigmoid", "Sin", "Exp", "Neg"):
            y = net.run(op, "block", y)
        return [y]

    sides = [net.body(partial(branch, number)) for number in (1, 2)]
    y = net.run("If", "block", above, then_branch=sides[0], else_branch=sides[1])
    actual = check_import(tmp_path, net.model(y), net.feeds())
    assert "block.then.weight" in actual.keys
    assert "class Otherwise" in actual.source
