"""Layers without names in the file are named after their attention."""

from pathlib import Path

import numpy as np

from tests.importer.structure.scoped_net import ScopedNet, check_import

WIDTH, HEADS = 8, 2


class NamelessNet(ScopedNet):
    """A writer of nodes and weights with numbers instead of names."""

    def __init__(self) -> None:
        super().__init__(producer="someone")

    def projection(self, x: str) -> str:
        weight = self.stored(
            f"w{self.count}", self.rng.normal(0, 0.4, (WIDTH, WIDTH)).astype("f")
        )
        return self.run("MatMul", "", x, weight)

    def heads(self, x: str) -> str:
        shape = self.stored("heads", np.array([0, 0, HEADS, WIDTH // HEADS], np.int64))
        return self.run(
            "Transpose", "", self.run("Reshape", "", x, shape), perm=[0, 2, 1, 3]
        )

    def attention(self, query: str, key: str, value: str) -> str:
        """Run softmax attention of heads; rows of ``WIDTH``."""
        key = self.run("Transpose", "", self.heads(key), perm=[0, 1, 3, 2])
        scores = self.run("MatMul", "", self.heads(query), key)
        scale = self.stored("scale", np.float32((WIDTH // HEADS) ** -0.5))
        weights = self.run("Softmax", "", self.run("Mul", "", scores, scale), axis=-1)
        x = self.run("MatMul", "", weights, self.heads(value))
        x = self.run("Transpose", "", x, perm=[0, 2, 1, 3])
        return self.run(
            "Reshape", "", x, self.stored("rows", np.array([0, 0, WIDTH], np.int64))
        )


def test_projections_of_an_attention(tmp_path: Path) -> None:
    net = NamelessNet()
    x = net.input("x", "batch", 5, WIDTH)
    y = net.attention(net.projection(x), net.projection(x), net.projection(x))
    y = net.run("Add", "", x, net.projection(y))
    y = net.run("Relu", "", net.projection(y))
    imported = check_import(tmp_path, net.model(y), net.feeds())
    roles = ("query", "key", "value", "output", "linear")
    assert imported.keys == {f"{role}.weight" for role in roles}


def test_a_projection_that_is_key_and_value(tmp_path: Path) -> None:
    """It has two roles, so neither is its name."""
    net = NamelessNet()
    x = net.input("x", "batch", 5, WIDTH)
    shared = net.projection(x)
    y = net.attention(net.projection(x), shared, shared)
    imported = check_import(tmp_path, net.model(y), net.feeds())
    assert imported.keys == {"query.weight", "linear.weight"}


def test_blocks_of_nameless_layers(tmp_path: Path) -> None:
    net = NamelessNet()
    x = net.input("x", "batch", 5, WIDTH)
    for _ in range(4):
        y = net.attention(net.projection(x), net.projection(x), net.projection(x))
        x = net.run("Tanh", "", net.run("Add", "", x, net.projection(y)))
    imported = check_import(tmp_path, net.model(x), net.feeds())
    assert {key.split(".")[-2] for key in imported.keys} == {
        *("query", "key", "value", "output")
    }
    assert "nn.ModuleList(Block() for _ in range(" in imported.source
