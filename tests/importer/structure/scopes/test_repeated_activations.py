"""An activation that several modules apply to one operand is in each of them."""

from collections.abc import Sequence
from pathlib import Path

from onnx import helper

from tests.importer.structure.scoped_net import Imported, ScopedNet, check_import

CHANNELS = 4
#: The modules that read one operand, and each other's results.
LIST = ("blocks.0", "blocks.1", "blocks.2")


def branches(
    folder: Path, scopes: Sequence[str], reads_operand: bool = True
) -> Imported:
    """Return residual branches, whose first activation runs once, in the first one."""
    net = ScopedNet()
    x = net.input("x", "batch", CHANNELS, 5, 5)
    y = net.run("LeakyRelu", scopes[0], x, alpha=0.1)
    results = []
    for scope in scopes:
        z = net.conv(f"{scope}.first", y, CHANNELS, CHANNELS, 3)
        z = net.run("LeakyRelu", scope, z, alpha=0.1)
        z = net.conv(f"{scope}.second", z, CHANNELS, CHANNELS, 3)
        is_residual = reads_operand or scope == scopes[0]
        results.append(net.run("Add", scope, z, x if is_residual else y))
    imported = check_import(
        folder, net.model(net.run("Sum", "", *results)), net.feeds()
    )
    assert imported.keys == set(net.weights)
    return imported


def test_members_of_a_list_have_one_class(tmp_path: Path) -> None:
    source = branches(tmp_path, LIST).source
    assert source.count("\nclass ") == 2
    assert source.count("ops.leaky_relu(") == 2
    assert "nn.ModuleList(Block() for _ in range(3))" in source


def test_modules_that_do_not_read_the_operand_share_the_result(tmp_path: Path) -> None:
    source = branches(tmp_path, LIST, reads_operand=False).source
    assert "ops.leaky_relu(x, alpha=0.1)" in source.partition("\nclass ")[2]
    assert "self.blocks[1](x)" not in source


def test_modules_of_no_list_share_the_result(tmp_path: Path) -> None:
    source = branches(tmp_path, ("left", "right")).source
    assert "self.right(x)" not in source


def test_operands_of_the_module_itself_are_no_operand_of_others(tmp_path: Path) -> None:
    """A module that returns an activation of its own value runs before its reader."""
    net = ScopedNet()
    x = net.input("x", "batch", CHANNELS, 5, 5)
    y = net.conv("blocks.0.conv", x, CHANNELS, CHANNELS)
    z = net.run("Tanh", "blocks.0", y)
    own = net.run("Mul", "blocks.0", z, x)
    next_ = net.run("Add", "blocks.1", net.conv("blocks.1.conv", z, 4, 4), y)
    model = net.model(net.run("Add", "", own, next_))
    source = check_import(tmp_path, model, net.feeds()).source
    assert source.count("ops.tanh(") == 1


def test_random_functions_run_once(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.input("x", "batch", CHANNELS, 5, 5)
    noise = net.run("RandomNormalLike", "blocks.0", x)
    zero = net.run("Sub", "", noise, noise)
    for scope in LIST[:2]:
        inner = net.run("Sub", scope, noise, noise)
        zero = net.run("Add", "", zero, net.run("Mul", scope, inner, x))
    model = net.model(zero)
    assert model.graph.output and helper is not None
    source = check_import(tmp_path, model, net.feeds()).source
    assert source.count("ops.normal") <= 1
