"""Keys of modules and arrays whose PyTorch names are no valid attributes."""

from pathlib import Path

import pytest

from burn.record import open_record
from tests.importer.structure.scoped_net import Imported, ScopedNet, check_import

NAMES = [
    "boxes",
    "valid",
    "describe",
    "num_parameters",
    "record_names",
    "_conv",
    "a__b",
]


def check_keys(tmp_path: Path, net: ScopedNet, actual: Imported) -> None:
    """Compare keys with those of the file, and load the state with them."""
    assert actual.keys == set(net.weights)
    assert set(open_record(tmp_path / "tree" / "net.safetensors")) == actual.keys
    state = {key: array * 2 for key, array in net.weights.items()}
    actual.module.load_state_dict(dict(state))
    for key, tensor in actual.module.state_dict().items():
        assert (tensor.numpy() == state[key]).all(), key


@pytest.mark.parametrize("name", NAMES)
def test_a_layer(tmp_path: Path, name: str) -> None:
    net = ScopedNet()
    x = net.linear(name, net.input("x", 2, 4), 4, 4)
    x = net.linear("head", net.run("Relu", "", x), 4, 3)
    result = check_import(tmp_path, net.model(x), net.feeds(), flat=False)
    check_keys(tmp_path, net, result)


@pytest.mark.parametrize("name", NAMES)
def test_a_module_in_two_instances_of_a_class(tmp_path: Path, name: str) -> None:
    net = ScopedNet()
    x = net.input("x", 2, 4)
    for number in range(2):
        scope = f"blocks.{number}.{name}"
        y = net.linear(f"{scope}.up", x, 4, 6)
        y = net.linear(f"{scope}.down", net.run("Relu", scope, y), 6, 4)
        y = net.run("Mul", scope, y, net.weight(f"{scope}.scale", 4))
        x = net.run("Add", f"blocks.{number}", x, y)
    result = check_import(tmp_path, net.model(x), net.feeds(), flat=False)
    check_keys(tmp_path, net, result)


@pytest.mark.parametrize("name", NAMES)
def test_a_parameter(tmp_path: Path, name: str) -> None:
    net = ScopedNet()
    x = net.linear("head.up", net.input("x", 2, 4), 4, 4)
    x = net.run("Mul", "head", x, net.weight(f"head.{name}", 4))
    x = net.linear("tail", x, 4, 3)
    result = check_import(tmp_path, net.model(x), net.feeds(), flat=False)
    check_keys(tmp_path, net, result)


def test_one_attribute_for_two_names(tmp_path: Path) -> None:
    """An attribute with two names keeps its own in all keys."""
    net = ScopedNet()
    x = net.linear("a._fc", net.input("x", 2, 4), 4, 4)
    x = net.run("Mul", "a", x, net.weight("a.scale", 4))
    x = net.linear("b.fc", x, 4, 4)
    x = net.run("Mul", "b", x, net.weight("b.scale", 4))
    actual = check_import(tmp_path, net.model(x), net.feeds(), flat=False)
    assert {"a.fc.weight", "b.fc.weight", "a.scale", "b.scale"} < actual.keys


def test_a_name_with_a_hyphen_in_the_scopes_of_an_exporter(tmp_path: Path) -> None:
    """As in torchvision's RegNet, whose blocks are called ``block1-0``."""
    net = ScopedNet()
    x = net.input("x", 2, 4)
    for number in range(2):
        scope = f"trunk.block-{number}"
        x = net.run("Relu", scope, net.linear(f"{scope}.fc", x, 4, 4))
        x = net.linear(f"{scope}.out", x, 4, 4)
    x = net.linear("fc", x, 4, 2)
    actual = check_import(tmp_path, net.model(x), net.feeds(), flat=False)
    assert actual.keys == set(net.weights)


def test_one_attribute_for_two_names_in_two_classes(tmp_path: Path) -> None:
    """Each class has its own name: ``_blocks`` of the encoder, ``blocks``."""
    net = ScopedNet()
    x = net.input("x", 2, 4)
    for path in ("encoder._blocks", "decoder.blocks"):
        for number in range(2):
            scope = f"{path}.{number}"
            x = net.linear(f"{scope}.up", x, 4, 4)
            x = net.run("Relu", scope, x)
        x = net.run("Mul" if "_" in path else "Add", path.split(".")[0], x, x)
    actual = check_import(tmp_path, net.model(x), net.feeds(), flat=False)
    check_keys(tmp_path, net, actual)
    assert "encoder._blocks.1.up.weight" in actual.keys


def test_a_layer_that_only_some_instances_have(tmp_path: Path) -> None:
    """As in EfficientNet, whose first block has no ``_expand_conv``."""
    net = ScopedNet()
    x = net.input("x", 2, 4)
    for number in range(3):
        scope = f"blocks.{number}"
        y = net.linear(f"{scope}._expand", x, 4, 4) if number else x
        y = net.run("Relu", scope, y)
        y = net.linear(f"{scope}._project", y, 4, 4)
        x = net.run("Add", scope, x, y)
    actual = check_import(tmp_path, net.model(x), net.feeds(), flat=False)
    check_keys(tmp_path, net, actual)
    assert actual.source.count("class ") == 2
