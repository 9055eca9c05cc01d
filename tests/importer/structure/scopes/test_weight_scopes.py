"""Functions of a module's tensors run in it, whatever scope the file records."""

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from tests.importer.structure.scoped_net import ScopedNet, check_import

CHANNELS = 4


def scripted(net: ScopedNet, op: str, *operands: str) -> str:
    """Append a node of a scripted function, which has no scope; return its result."""
    name, net.count = f"{op}_{net.count}", net.count + 1
    net.nodes.append(helper.make_node(op, operands, [f"s_{name}"], name=name))
    return f"s_{name}"


def snake(net: ScopedNet, key: str, x: str, inverse: str | None = None) -> str:
    """Run ``x + sin(alpha x) ** 2 / alpha``; ``inverse`` is the key of the divisor."""
    alpha = net.weight(key, 1, CHANNELS, 1, 1)
    divisor = net.weight(inverse, 1, CHANNELS, 1, 1) if inverse else alpha
    sine = scripted(net, "Sin", scripted(net, "Mul", alpha, x))
    square = scripted(net, "Mul", sine, sine)
    wave = scripted(net, "Mul", scripted(net, "Reciprocal", divisor), square)
    return scripted(net, "Add", x, wave)


def units(net: ScopedNet, x: str) -> str:
    """Run three residual units of two activations and two convolutions each."""
    for number in range(3):
        scope, y = f"units.{number}", x
        for at in (0, 2):
            y = snake(net, f"{scope}.block.{at}.alpha", y)
            y = net.conv(f"{scope}.block.{at + 1}", y, CHANNELS, CHANNELS)
        x = net.run("Add", scope, x, y)
    return x


def test_a_scripted_function_runs_in_the_module_of_its_tensor(tmp_path: Path) -> None:
    net = ScopedNet()
    y = units(net, net.input("x", "batch", CHANNELS, 3, 3))
    imported = check_import(tmp_path, net.model(y), net.feeds())
    assert imported.keys == set(net.weights)
    assert imported.source.count("\nclass ") == 3
    assert "return x + ops.reciprocal(self.alpha) * " in imported.source


def test_a_function_of_two_modules_stays_around_both(tmp_path: Path) -> None:
    net = ScopedNet()
    y = net.conv("first.conv", net.input("x", "batch", CHANNELS, 3, 3), CHANNELS, 4)
    y = snake(net, "first.alpha", y, "second.beta")
    y = net.conv("second.conv", y, CHANNELS, CHANNELS)
    imported = check_import(tmp_path, net.model(y), net.feeds())
    assert "ops.reciprocal(self.beta)" in imported.source


def weight_norm(net: ScopedNet, scope: str, key: str, x: str) -> str:
    """Run a convolution whose weight a hook in ``scope`` computes from ``key``'s."""
    v = net.weight(f"{key}.weight_v", CHANNELS, CHANNELS, 1, 1)
    g = net.weight(f"{key}.weight_g", CHANNELS, 1, 1, 1)
    axes = net.stored("axes", np.array([1, 2, 3], np.int64))
    unit = net.run("Div", scope, v, net.run("ReduceL2", scope, v, axes))
    weight = net.run("Mul", scope, unit, g)
    return net.run("Conv", key, x, weight, net.weight(f"{key}.bias", CHANNELS))


@pytest.mark.parametrize("around", ["units.{}", ""])
def test_weights_are_computed_in_the_module_that_has_them(
    around: str, tmp_path: Path
) -> None:
    net = ScopedNet()
    x = net.input("x", "batch", CHANNELS, 3, 3)
    for number in range(3):
        for name in ("conv1", "conv2"):
            key, scope = f"units.{number}.{name}", around.format(number)
            x = net.run("Relu", f"units.{number}", weight_norm(net, scope, key, x))
    imported = check_import(tmp_path, net.model(x), net.feeds())
    assert imported.keys == {key for key in net.weights if key != "axes"}
    assert imported.source.count("self.weight_v = ") == 1


def test_weights_that_another_module_reads_stay_outside(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.input("x", "batch", CHANNELS, 3, 3)
    scale = net.run("Exp", "", net.weight("one.scale", CHANNELS, 1, 1))
    y = net.run("Mul", "one", net.conv("one.conv", x, CHANNELS, CHANNELS), scale)
    y = net.run("Mul", "two", net.conv("two.conv", y, CHANNELS, CHANNELS), scale)
    imported = check_import(tmp_path, net.model(y), net.feeds())
    assert imported.keys == set(net.weights)
    assert imported.source.count("ops.exp(") == 1


def parametrized(net: ScopedNet, key: str, x: str) -> str:
    """Run a convolution with PyTorch's parametrization for weight norm."""
    home, scope = f"{key}.parametrizations.weight", f"{key}.parametrizations.weight.0"
    v = net.weight(f"{home}.original1", CHANNELS, CHANNELS, 1, 1)
    g = net.weight(f"{home}.original0", CHANNELS, 1, 1, 1)
    axes = net.stored("axes", np.array([1, 2, 3], np.int64))
    unit = net.run("Div", scope, v, net.run("ReduceL2", scope, v, axes))
    weight = net.run("Mul", scope, unit, g)
    return net.run("Conv", key, x, weight, net.weight(f"{key}.bias", CHANNELS))


def test_a_parametrization_computes_the_weight(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.input("x", "batch", CHANNELS, 3, 3)
    for name in ("one", "two", "three"):
        x = net.run("Relu", "", parametrized(net, name, x))
    imported = check_import(tmp_path, net.model(x), net.feeds())
    assert imported.keys == {key for key in net.weights if key != "axes"}
    assert "ops.conv(x, self.parametrizations(), self.bias)" in imported.source
    assert imported.source.count("\nclass ") == 3


def test_stored_arrays_without_elements(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.input("x", 2, 3, CHANNELS)
    empty = net.stored("onnx::Concat_1", np.zeros((2, 0, CHANNELS), np.float32))
    for scope in ("one", "two"):
        x = net.run("Relu", scope, net.run("Concat", scope, empty, x, axis=1))
    check_import(tmp_path, net.model(x), net.feeds())


@pytest.mark.parametrize("is_trained", [True, False])
def test_a_mask_of_different_numbers_is_trained(
    is_trained: bool, tmp_path: Path
) -> None:
    net = ScopedNet()
    x = net.conv("one.conv", net.input("x", "batch", 8, 3, 3), 8, 8)
    mask = net.weight("one.mask", 8, 1, 1)
    if not is_trained:
        net.weights[mask] = (net.weights[mask] > 0).astype(np.float32)
    y = net.run("Mul", "one", x, mask)
    imported = check_import(tmp_path, net.model(y), net.feeds())
    kind = "parameter" if is_trained else "buffer"
    assert f"self.mask = nn.{kind}(8, 1, 1)" in imported.source
