"""Modules without weights as steps of an ``nn.Sequential``, between its layers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.importer.structure.scoped_net import ScopedNet, check_import

POOL = {"kernel_shape": [2, 2], "strides": [2, 2]}
#: The step of a sequence for a node of an operator with these attributes.
STEPS = [
    ("LeakyRelu", {"alpha": 0.1}, "nn.LeakyReLU(0.1)"),
    ("Elu", {"alpha": 0.5}, "nn.ELU(0.5)"),
    ("Elu", {}, "ops.elu"),
    ("Celu", {"alpha": 0.5}, "nn.CELU(0.5)"),
    ("HardSigmoid", {"alpha": 1 / 6}, "nn.Hardsigmoid()"),
    ("Softmax", {"axis": 1}, "nn.Softmax(axis=1)"),
    ("LogSoftmax", {"axis": 1}, "nn.LogSoftmax(axis=1)"),
    ("GlobalAveragePool", {}, "nn.AdaptiveAvgPool2d(1)"),
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


NEAREST = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
HALF_PIXEL = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
SIDES = np.array([0, 0, 1, 2, 0, 0, 1, 2])
EVEN = np.array([0, 0, 1, 1, 0, 0, 1, 1])
ONE = np.float32(1)
DOUBLED = np.array([1, 1, 2, 2], np.float32)
#: The step for a node with stored operands after the first; "" leaves one out.
STEPS_WITH_NUMBERS = [
    ("Pad", [EVEN], {"mode": "reflect"}, "nn.ReflectionPad2d(1)"),
    ("Pad", [SIDES], {"mode": "edge"}, "nn.ReplicationPad2d((2, 2, 1, 1))"),
    ("Pad", [EVEN, ONE], {}, "nn.ConstantPad2d(1, 1.0)"),
    ("Resize", ["", DOUBLED], NEAREST, "nn.Upsample(scale_factor=2)"),
    (
        "Resize",
        ["", DOUBLED],
        HALF_PIXEL,
        'nn.Upsample(scale_factor=2, mode="bilinear")',
    ),
    (
        "Resize",
        ["", "", np.array([2, 3, 24, 24])],
        NEAREST,
        "nn.Upsample(scale_factor=3)",
    ),
    ("ReduceMean", [np.array([-1, 2])], {}, "nn.AdaptiveAvgPool2d(1)"),
]


@pytest.mark.parametrize(("op", "numbers", "attributes", "step"), STEPS_WITH_NUMBERS)
def test_a_step_with_numbers(
    op: str,
    numbers: list[Any],
    attributes: dict[str, object],
    step: str,
    tmp_path: Path,
) -> None:
    actual = check_import(tmp_path, *step_between(op, numbers, attributes))
    assert f"{step}," in actual.source
    assert "return self.net(x)" in actual.source


def step_between(
    op: str, numbers: list[Any], attributes: dict[str, object]
) -> tuple[Any, Any]:
    """Return a model and its inputs: convolution, operator, convolution."""
    net = ScopedNet()
    names = [
        (
            net.stored(f"number{k}", one)
            if isinstance(one, np.ndarray | np.generic)
            else ""
        )
        for k, one in enumerate(numbers)
    ]
    x = net.conv("net.0", net.input("x", 2, 3, 8, 8), 3, 3)
    x = net.run(op, "net.1", x, *names, **attributes)
    x = net.conv("net.2", x, 3, 3)
    return net.model(x), net.feeds()


@pytest.mark.parametrize(
    ("op", "numbers", "attributes"),
    [
        ("Pad", [np.array([0, 1, 1, 1, 0, -1, 1, 1])], {"mode": "constant"}),
        ("Resize", ["", np.array([1, 1, 2, 3], np.float32)], NEAREST),
        ("Resize", ["", DOUBLED], {"nearest_mode": "ceil"}),
        ("Resize", ["", DOUBLED], {"mode": "cubic"}),
        ("HardSigmoid", [], {"alpha": 0.25}),
        ("ReduceMean", [np.array([3])], {}),
    ],
)
def test_an_operator_without_a_module_is_no_step(
    op: str, numbers: list[Any], attributes: dict[str, object], tmp_path: Path
) -> None:
    actual = check_import(tmp_path, *step_between(op, numbers, attributes))
    assert "nn.Sequential" not in actual.source


def test_a_flattened_mean_is_two_modules(tmp_path: Path) -> None:
    net = ScopedNet()
    axes = net.stored("axes", np.array([2, 3]))
    x = net.conv("net.0", net.input("x", 2, 3, 8, 8), 3, 4)
    x = net.run("ReduceMean", "net.2", x, axes, keepdims=0)
    x = net.linear("net.3", x, 4, 5)
    actual = check_import(tmp_path, net.model(x), net.feeds())
    assert "nn.AdaptiveAvgPool2d(1)," in actual.source
    assert "nn.Flatten()," in actual.source
    assert "return self.net(x)" in actual.source


def test_a_mean_without_room_is_one_module(tmp_path: Path) -> None:
    net = ScopedNet()
    axes = net.stored("axes", np.array([2, 3]))
    x = net.conv("net.0", net.input("x", 2, 3, 8, 8), 3, 4)
    x = net.run("ReduceMean", "net.1", x, axes, keepdims=0)
    x = net.linear("net.2", x, 4, 5)
    actual = check_import(tmp_path, net.model(x), net.feeds())
    assert "nn.GlobalAvgPool()," in actual.source


def test_a_step_before_the_first_layer(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.run("Flatten", "head.0", net.input("x", 2, 3, 2))
    x = net.linear("head.1", x, 6, 4)
    x = net.linear("head.3", net.run("Relu", "head.2", x), 4, 5)
    actual = check_import(tmp_path, net.model(x), net.feeds())
    steps = "nn.Flatten(), nn.Linear(6, 4), ops.relu, nn.Linear(4, "
    assert steps in " ".join(actual.source.split())


@pytest.mark.parametrize("scope", ["features.2", ""])
def test_a_flatten_after_the_last_layer(scope: str, tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.conv("features.0", net.input("x", 2, 3, 2, 2), 3, 3)
    x = net.conv("features.1", x, 3, 3)
    x = net.linear("head", net.run("Flatten", scope, x), 12, 5)
    actual = check_import(tmp_path, net.model(x), net.feeds())
    assert ("nn.Flatten()" in actual.source) == bool(scope)


def test_functions_between_modules_and_layers(tmp_path: Path) -> None:
    net = ScopedNet()
    scales = net.stored("scales", DOUBLED)
    x = net.conv("net.0", net.input("x", 2, 3, 8, 8), 3, 3)
    x = net.run("Relu", "net.1", x)
    x = net.run("Add", "net.2", x, net.conv("net.2.conv", x, 3, 3))
    x = net.run("Resize", "net.3", x, "", scales, **NEAREST)
    x = net.conv("net.5", net.run("Tanh", "net.4", x), 3, 3)
    actual = check_import(tmp_path, net.model(x), net.feeds())
    steps = ("ops.relu", "nn.Upsample(scale_factor=2)", "ops.tanh")
    assert [s for s in steps if f"{s}," in actual.source] == [*steps]
    assert "nn.ModuleTuple" not in actual.source


def test_a_function_whose_result_is_read_twice_is_no_step(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.conv("net.0", net.input("x", 2, 3, 8, 8), 3, 3)
    y = net.run("Relu", "net.1", x)
    x = net.run("Add", "net.2", y, net.conv("net.2.conv", y, 3, 3))
    z = net.run("Tanh", "net.3", x)
    x = net.run("Add", "", net.conv("net.4", z, 3, 3), z)
    actual = check_import(tmp_path, net.model(x), net.feeds())
    assert "ops.tanh," not in actual.source


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


def test_an_embedding_is_the_first_step(tmp_path: Path) -> None:
    net = ScopedNet()
    table = net.weight("net.0.weight", 5, 4)
    rows = net.run("Cast", "", net.input("x", 2, 3), to=7)
    x = net.run("Tanh", "net.1", net.run("Gather", "net.0", table, rows))
    actual = check_import(tmp_path, net.model(x), {"x": np.ones((2, 3), np.float32)})
    assert "nn.Sequential(nn.Embedding(5, 4), ops.tanh)" in actual.source


def test_a_node_without_operands_is_no_step(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.input("x", 2, 3)
    rows = net.run("SequenceInsert", "", net.run("SequenceEmpty", ""), x)
    x = net.run("ConcatFromSequence", "", rows, axis=0)
    actual = check_import(tmp_path, net.model(x), net.feeds())
    assert "nn.Sequential" not in actual.source


def test_a_step_behind_another_member_is_not_in_front(tmp_path: Path) -> None:
    net = ScopedNet()
    bias = net.weight("net.0.bias", 6)
    x = net.run("Add", "net.0", net.input("x", 2, 6), bias)
    x = net.linear("net.2", net.run("Relu", "net.1", x), 6, 5)
    actual = check_import(tmp_path, net.model(x), net.feeds())
    assert "net.0.bias" in actual.keys
