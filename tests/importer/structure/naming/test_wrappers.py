"""A root that only calls one submodule is left out; record keys keep its name."""

from pathlib import Path

import pytest

from burn_import.options import Options
from burn_import.pipeline import import_model
from tests.importer.structure.scoped_net import ScopedNet, check_import


def wrapped(*around: str) -> tuple[ScopedNet, str]:
    """Return a network of two layers in the modules ``around``, and its output."""
    net = ScopedNet()
    scope = ".".join(around)
    x = net.linear(f"{scope}.up", net.input("x", "n", 4), 4, 6)
    return net, net.linear(f"{scope}.down", net.run("Tanh", scope, x), 6, 4)


@pytest.mark.parametrize("around", [("model",), ("model", "net"), ("_model", "type")])
def test_keys_begin_with_the_attributes_of_wrappers(
    tmp_path: Path, around: tuple[str, ...]
) -> None:
    net, y = wrapped(*around)
    actual = check_import(tmp_path, net.model(y), net.feeds(1), net.feeds(3))
    assert actual.keys == set(net.weights)
    text = source(tmp_path, net, y)
    assert text.count("(nn.Module)") == 1
    assert f'record_prefix = "{".".join(around)}"' in text


def test_submodules_with_one_name_are_one_below_another(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.linear("net.net.up", net.input("x", "n", 4), 4, 6)
    x = net.run("Tanh", "net.net", x)
    x = net.run("Relu", "net", net.linear("net.down", x, 6, 4))
    actual = check_import(tmp_path, net.model(x), net.feeds(1), net.feeds(3))
    assert actual.keys == set(net.weights)


def test_a_weight_of_another_module_keeps_the_wrapper(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.linear("model.up", net.input("x", "n", 4), 4, 4)
    scale = net.weight("other.table", 4)
    x = net.run("Mul", "model", net.run("Tanh", "model", x), scale)
    x = net.linear("model.down", net.run("Sigmoid", "model", x), 4, 4)
    check_import(tmp_path, net.model(x), net.feeds(1), net.feeds(3))
    assert "record_prefix" not in source(tmp_path, net, x)


@pytest.mark.parametrize("outside", ["Softmax", "Neg"])
def test_a_root_that_computes_stays(tmp_path: Path, outside: str) -> None:
    net, y = wrapped("model")
    y = net.run(outside, "", y)
    actual = check_import(tmp_path, net.model(y), net.feeds(1), net.feeds(3))
    assert actual.keys == set(net.weights)
    assert "record_prefix" not in source(tmp_path, net, y)


def test_two_calls_stay(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.input("x", "n", 4)
    for _ in range(2):
        x = net.linear("model.fc", x, 4, 4)
        x = net.run("Tanh", "model", net.run("Mul", "model", x, x))
    assert check_import(tmp_path, net.model(x), net.feeds(1)).keys == set(net.weights)
    assert "record_prefix" not in source(tmp_path, net, x)


def test_modules_of_pytorch_keep_the_wrapper(tmp_path: Path) -> None:
    text = source(tmp_path, *wrapped("model"), target="torch")
    assert "self.model = " in text
    assert "record_prefix" not in text


def source(folder: Path, net: ScopedNet, output: str, target: str = "burn") -> str:
    """Return the generated source of ``net``."""
    path = folder / "wrapped.onnx"
    path.write_bytes(net.model(output).SerializeToString())
    return import_model(path, Options(target=target)).text
