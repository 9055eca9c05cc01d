"""Extents that one module computes and another one reads."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.structure.scoped_net import ScopedNet, check_import


def attention(net: ScopedNet, scope: str, x: str, extent: str) -> str:
    """Append rows through windows of two, whose count is ``extent``, and back."""
    last = net.stored("last", np.array([2, 3]))
    windows = net.run("Concat", scope, extent, last, axis=0)
    y = net.run("Tanh", scope, net.run("Reshape", scope, x, windows))
    y = net.run("Softmax", scope, y, axis=1)
    rows = net.run("Reshape", scope, y, net.stored("rows", np.array([-1, 3])))
    return net.run("Mul", scope, rows, net.weight(f"{scope}.scale", 3))


@pytest.mark.parametrize("depth", (1, 2))
def test_an_extent_that_callers_write_themselves(tmp_path: Path, depth: int) -> None:
    """As in Swin: the first block multiplies the batch, later ones read that."""
    net = ScopedNet()
    x = net.input("x", "batch", 6)
    y = net.linear("embed", x, 6, 12)
    scopes = [f"blocks.{i}" + ".attn" * (depth - 1) for i in range(2)]
    shape = net.run("Shape", scopes[0], y)
    zero = net.stored("zero", np.array([0]))
    batch = net.run("Gather", scopes[0], shape, zero, axis=0)
    extent = net.run("Mul", scopes[0], batch, net.stored("two", np.array([2])))
    y = net.run("Reshape", "", y, net.stored("flat", np.array([-1, 3])))
    for scope in scopes:
        y = net.run("Add", scope, y, attention(net, scope, y, extent))
    actual = check_import(tmp_path, net.model(y), net.feeds(4))
    assert "tuple[" not in actual.source
    assert "ops.array(" not in actual.source


def test_an_extent_that_is_read_stays(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.input("x", "batch", 6)
    y = net.linear("blocks.0.fc", x, 6, 6)
    extent = net.run("Shape", "blocks.0", y)
    y = net.run("Relu", "blocks.0", y)
    y = net.linear("blocks.1.fc", y, 6, 6)
    check_import(tmp_path, net.model(y, extent), net.feeds(4))


def test_a_size_of_parts_that_the_first_of_several_modules_computes(
    tmp_path: Path,
) -> None:
    """As in experts: their module has a product of extents, and not its factors."""
    net = ScopedNet()
    x = net.input("x", "batch", "length", 3)
    shape = net.run("Shape", "", x)
    zero, one = net.stored("zero", np.array(0)), net.stored("one", np.array(1))
    batch = net.run("Gather", "", shape, zero, axis=0)
    length = net.run("Gather", "", shape, one, axis=0)
    rows = net.stored("rows", np.array([-1, 3]))
    y = net.run("Reshape", "", x, rows)
    scopes = [f"layers.{i}.experts" for i in range(2)]
    size = net.run("Mul", scopes[0], net.stored("three", np.array(3)), length)
    size = net.run("Mul", scopes[0], size, batch)
    for scope in scopes:
        flat = net.run("Reshape", scope, y, net.stored("flat", np.array([-1])))
        numbers = net.run("Cast", scope, net.run("Range", scope, zero, size, one), to=1)
        z = net.run("Reshape", scope, net.run("Mul", scope, flat, numbers), rows)
        z = net.run("Mul", scope, z, net.weight(f"{scope}.scale", 3))
        y = net.run("Add", scope.removesuffix(".experts"), y, z)
    feeds = {"x": net.rng.normal(0, 1, (2, 4, 3)).astype(np.float32)}
    actual = check_import(tmp_path, net.model(y), feeds)
    assert "tuple[" not in actual.source
    assert actual.source.count("\nclass ") == 3
