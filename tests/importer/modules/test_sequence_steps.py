"""Modules without weights as steps of an ``nn.Sequential``, between its layers."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.structure.scoped_net import ScopedNet, check_import

POOL = {"kernel_shape": [2, 2], "strides": [2, 2]}
#: The step of a sequence for a node of an operator with these attributes.
STEPS = [
    ("LeakyRelu", {"alpha": 0.1}, "nn.LeakyReLU(0.1)"),
    ("Elu", {"alpha": 0.5}, "nn.ELU(0.5)"),
    ("Elu", {}, "ops.elu"),
    ("MaxPool", POOL, "nn.MaxPool2d(kernel_size=2)"),
    ("MaxPool", POOL | {"strides": [1, 1]}, "nn.MaxPool2d(kernel_size=2, stride=1)"),
    ("AveragePool", POOL, "nn.AvgPool2d(kernel_size=2)"),
    (
        "AveragePool",
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
        "nn.AvgPool2d(kernel_size=3, stride=1, padding=1, count_include_pad=False)",
    ),
]


@pytest.mark.parametrize(("op", "attributes", "step"), STEPS)
def test_a_step_between_layers(
    op: str, attributes: dict[str, object], step: str, tmp_path: Path
) -> None:
    net = ScopedNet()
    x = net.conv("net.0", net.input("x", 2, 3, 8, 8), 3, 3)
    x = net.run(op, "net.1", x, **attributes)
    x = net.conv("net.2", x, 3, 3)
    actual = check_import(tmp_path, net.model(x), net.feeds())
    assert f"{step}," in actual.source
    assert "return self.net(x)" in actual.source
    assert actual.keys == {
        f"net.{i}.{name}" for i in (0, 2) for name in ("weight", "bias")
    }


def test_bounds_of_clip_are_numbers_of_the_file(tmp_path: Path) -> None:
    net = ScopedNet()
    bounds = [net.stored(name, np.float32(n)) for name, n in (("low", 0), ("high", 6))]
    x = net.conv("net.0", net.input("x", 2, 3, 8, 8), 3, 3)
    x = net.run("Clip", "net.1", x, *bounds)
    x = net.conv("net.2", x, 3, 3)
    actual = check_import(tmp_path, net.model(x), net.feeds())
    assert "nn.ReLU6()," in actual.source


def test_uneven_padding_is_no_step(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.conv("net.0", net.input("x", 2, 3, 8, 8), 3, 3)
    x = net.run("MaxPool", "net.1", x, kernel_shape=[2, 2], pads=[0, 0, 1, 1])
    x = net.conv("net.2", x, 3, 3)
    actual = check_import(tmp_path, net.model(x), net.feeds())
    assert "nn.MaxPool2d" not in actual.source
