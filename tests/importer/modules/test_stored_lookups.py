"""Embeddings of stored indices, and parameters that are read by stored indices."""

from pathlib import Path

import numpy as np

from tests.importer.structure.scoped_net import ScopedNet, check_import

POSITIONS = np.arange(12).reshape(1, 12)


def test_a_lookup_in_the_scope_of_its_table_is_an_embedding(tmp_path: Path) -> None:
    net = ScopedNet()
    table = net.weight("embeddings.position.weight", 16, 4)
    ids = net.stored("onnx::Gather_7", POSITIONS)
    rows = net.run("Gather", "embeddings.position", table, ids)
    x = net.run("Add", "embeddings", net.input("x", 2, 12, 4), rows)
    actual = check_import(tmp_path, net.model(x), net.feeds())
    assert "self.position = nn.Embedding(16, 4)" in actual.source
    assert "self.position(ops.arange(12).reshape(1, 12))" in actual.source
    assert actual.keys == {"embeddings.position.weight"}


def test_a_parameter_that_is_indexed_keeps_its_key(tmp_path: Path) -> None:
    net = ScopedNet()
    table = net.weight("attention.bias_table", 16, 4)
    rows = net.run("Gather", "attention", table, net.stored("index", POSITIONS))
    x = net.run("Add", "attention", net.input("x", 2, 12, 4), rows)
    actual = check_import(tmp_path, net.model(x), net.feeds())
    assert "nn.Embedding" not in actual.source
    assert actual.keys == {"attention.bias_table"}
