"""Arrays of list members without a layer are fields of the class of the list."""

from pathlib import Path

import pytest

from tests.importer.codegen.merge.test_single_members import imported
from tests.importer.structure.scoped_net import ScopedNet


def network(
    layers: tuple[int, ...], again: bool = False, table: str = "table"
) -> tuple[ScopedNet, str]:
    """Return a network whose sequence ``block.mlp`` has a bias, and these layers.

    The second value is its output.
    """
    net = ScopedNet()
    x = net.linear("stem", net.input("x", "n", 4), 4, 4)
    y = net.run("Relu", "block", x)
    rows = net.weight(f"block.{table}", 1, 4)
    bias = net.run("Add", "block.mlp.0", rows, net.weight("block.mlp.0.bias", 4))
    if again:
        y = net.run("Mul", "block", y, net.weight("block.mlp.0.bias", 4))
    bias = net.run("Relu", "block.mlp.1", bias)
    for number in layers:
        bias = net.linear(f"block.mlp.{number}", bias, 4, 4)
        bias = net.run("Mul", "block", bias, y)
    return net, net.linear("head", net.run("Add", "block", y, bias), 4, 3)


@pytest.mark.parametrize("again", [False, True], ids=["once", "twice"])
def test_a_list_with_one_layer_left_is_the_layer(tmp_path: Path, again: bool) -> None:
    source = imported(tmp_path, *network((2,), again)).source
    assert "class Mlp" not in source and "nn.ModuleTuple" not in source
    assert '"mlp": "mlp.2"' in source and '"mlp_bias": "mlp.0.bias"' in source
    assert "self.mlp = nn.Linear(4, 4)" in source


def test_a_list_with_more_layers_stays(tmp_path: Path) -> None:
    source = imported(tmp_path, *network((2, 4))).source
    assert '"mlp_bias": "mlp.0.bias"' in source
    assert "self.mlp = nn.ModuleTuple(" in source and "class Mlp" not in source


def test_a_name_that_is_in_use_stays(tmp_path: Path) -> None:
    source = imported(tmp_path, *network((2,), table="mlp_bias")).source
    assert "self.mlp_bias = nn.parameter(1, 4)" in source


def test_a_member_of_modules_stays_in_the_list(tmp_path: Path) -> None:
    """As in video coders, whose levels run in the class of the list."""
    net = ScopedNet()
    y = net.linear("stem", net.input("x", "n", 4), 4, 4)
    for level, function in enumerate(("Relu", "Tanh", "Sigmoid")):
        for name in ("conv1", "conv2"):
            z = net.linear(f"down.{level}.block.0.{name}", y, 4, 4)
            y = net.run("Add", "", y, net.run(function, "", z))
        if level:
            y = net.linear(f"down.{level}.downsample", y, 4, 4)
    source = imported(tmp_path, net, net.linear("head", y, 4, 3)).source
    assert "self.down[0].block[0].conv1(" in source
    assert "down_block" not in source
