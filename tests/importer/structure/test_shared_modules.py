"""Modules that run several times with the same weights are called several times."""

from pathlib import Path

import pytest

from tests.importer.structure.scoped_net import Imported, ScopedNet, check_import


def block(net: ScopedNet, x: str, call: int) -> str:
    """Run a residual block, in the scope that PyTorch's exporter gives a call."""
    again = f"_{call}" if call else ""
    y = net.linear("block.up", x, 6, 12)
    y = net.run("Relu", f"block{again}", y)
    y = net.linear("block.down", y, 12, 6)
    return net.run("Add", f"block{again}", x, y)


def test_a_block_that_is_called_twice(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.input("x", "batch", 6)
    model = net.model(net.linear("head", block(net, block(net, x, 0), 1), 6, 3))
    imported = check_import(tmp_path, model, net.feeds(2), net.feeds(3), flat=False)
    assert "self.head(self.block(self.block(x)))" in imported.source
    assert imported.keys == set(net.weights)


def test_a_block_that_is_called_often_is_called_in_a_loop(tmp_path: Path) -> None:
    net = ScopedNet()
    y = net.input("x", "batch", 6)
    for call in range(4):
        y = block(net, y, call)
    imported = check_import(tmp_path, net.model(y), net.feeds(2), flat=False)
    assert "for _ in range(4):" in imported.source
    assert imported.source.count("= self.block(") == 1


def test_an_encoder_of_two_inputs(tmp_path: Path) -> None:
    net = ScopedNet()
    left, right = net.input("left", "batch", 6), net.input("right", "batch", 6)
    u, v = block(net, left, 0), block(net, right, 1)
    imported = check_import(
        tmp_path, net.model(net.run("Sub", "", u, v)), net.feeds(2), flat=False
    )
    assert "self.block(left)" in imported.source
    assert "self.block(right)" in imported.source


def test_calls_with_other_operators_stay_one_call(tmp_path: Path) -> None:
    net = ScopedNet()
    y = block(net, net.input("x", "batch", 6), 0)
    z = net.linear("block.up", y, 6, 12)
    z = net.linear("block.down", net.run("Sigmoid", "block_1", z), 12, 6)
    imported = check_import(tmp_path, net.model(z), net.feeds(2), flat=False)
    assert (
        imported.source.count("ops.relu") == imported.source.count("ops.sigmoid") == 1
    )


@pytest.mark.parametrize("has_activation", [False, True])
def test_a_sequence_for_several_sizes(tmp_path: Path, has_activation: bool) -> None:
    """The second caller applies a function that the first does not."""
    net = ScopedNet()
    x = net.input("x", 2, 4, 8, 8)
    small = net.run("MaxPool", "", x, kernel_shape=[2, 2], strides=[2, 2])
    results = []
    for call, level in enumerate((x, small)):
        again = f"_{call}" if call else ""
        y = net.conv("tower.0", level, 4, 4, size=3)
        y = net.run("Relu", f"tower.1{again}", y)
        y = net.conv("tower.2", y, 4, 4)
        is_last = has_activation and call == 1
        results.append(net.run("Relu", "", y) if is_last else y)
    imported: Imported = check_import(
        tmp_path, net.model(*results), net.feeds(), flat=False
    )
    assert imported.source.count("self.tower(") == len(results)
    assert "nn.Sequential(" in imported.source
