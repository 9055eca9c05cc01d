"""Lists of modules whose numbers, members or neighbors are unusual."""

from pathlib import Path

import numpy as np
import pytest

from burn_import.provenance.path_segments import scope_paths
from tests.importer.structure.scoped_net import ScopedNet, check_import
from tests.modules import Array


def image(channels: int, seed: int = 0) -> Array:
    shape = (2, channels, 5, 6)
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def test_a_chain_of_layers_before_modules_of_the_same_list(tmp_path: Path) -> None:
    """As in SqueezeNet: a convolution, an activation, then modules with layers."""
    net = ScopedNet()
    x = net.conv("features.0", net.input("x", "n", 3, 5, 6), 3, 4, 3)
    x = net.run("Relu", "features.1", x)
    for number in (3, 4):
        scope = f"features.{number}"
        x = net.conv(f"{scope}.squeeze", x, 4, 2)
        x = net.run("Relu", f"{scope}.act", x)
        one = net.conv(f"{scope}.one", x, 2, 2)
        three = net.conv(f"{scope}.three", x, 2, 2, 3)
        x = net.run("Concat", scope, one, three, axis=1)
    x = net.conv("classifier.1", x, 4, 5)
    x = net.run("Relu", "classifier.2", x)
    x = net.run("GlobalAveragePool", "classifier.3", x)
    actual = check_import(
        tmp_path, net.model(net.run("Flatten", "", x)), {"x": image(3)}
    )
    assert actual.keys == set(net.weights)


def test_a_list_whose_first_member_is_a_module_without_names(tmp_path: Path) -> None:
    """A norm outside of a Sequential is folded into the convolution inside."""
    net = ScopedNet()
    x = net.input("x", 2, 3, 5, 6)
    weights = (net.weight("onnx::Conv_28", 4, 3, 3, 3), net.weight("onnx::Conv_29", 4))
    x = net.run("Conv", "stem.0.conv", x, *weights)
    x = net.run("Relu", "stem.0.act", x)
    weights = (net.weight("onnx::Conv_31", 4, 4, 1, 1), net.weight("onnx::Conv_32", 4))
    x = net.run("Conv", "stem.1", x, *weights)
    x = net.run("Relu", "norm.act", x)
    x = net.run("Add", "", net.conv("a", x, 4, 4), net.conv("b", x, 4, 4))
    actual = check_import(tmp_path, net.model(x), {"x": image(3)})
    layers = [f"{path}.{leaf}" for path in "ab" for leaf in ("weight", "bias")]
    stem = [
        f"stem.{path}.{leaf}" for path in ("0.conv", "1") for leaf in ("weight", "bias")
    ]
    assert actual.keys == {*layers, *stem}


def test_numbers_that_do_not_follow_the_order_of_calls(tmp_path: Path) -> None:
    net = ScopedNet("someone")
    x, y = net.input("x", 4, 4), net.input("y", 4, 1, 4)
    weight = net.weight("w", 4, 4)
    product = net.run("Gemm", "layer.2", x, weight, net.input("z", 4, 4), transA=1)
    scales = net.weight("scale", 4), net.weight("offset", 4)
    shifted = net.run("LayerNormalization", "layer.2", product, *scales)
    filters = net.weight("filters", 4, 1, 3), net.weight("shift", 4)
    result = net.run("Conv", "layer.1", y, *filters)
    turned = net.run("Transpose", "layer.3", result)
    check_import(tmp_path, net.model(shifted, turned), net.feeds())


def test_a_numbered_layer_of_stored_arrays(tmp_path: Path) -> None:
    """A chain without a data input is not called as an ``nn.Sequential``."""
    net = ScopedNet("someone")
    data, weight = net.weight("data", 1, 2, 4), net.weight("filters", 3, 2, 2)
    result = net.run("Conv", "layer.3", data, weight)
    result = net.run("Transpose", "layer.4", result)
    total = net.run("Add", "", result, net.input("x", 1))
    check_import(tmp_path, net.model(total), {"x": np.ones(1, np.float32)})


def test_an_array_called_like_the_module_of_another(tmp_path: Path) -> None:
    net = ScopedNet("someone")
    x = net.run("Mul", "", net.input("a", 3), net.weight("{x}", 3))
    x = net.run("Add", "", x, net.weight("x.y", 3))
    actual = check_import(tmp_path, net.model(x), {"a": np.ones(3, np.float32)})
    assert "x.y" in actual.keys


def test_an_array_read_before_the_module_that_it_is_called_like(tmp_path: Path) -> None:
    net = ScopedNet("someone")
    x = net.input("a", 3)
    for name in ("{x}", "x.y", "{x}.y", "x/y", "x.y.z"):
        x = net.run("Mul", "", x, net.weight(name, 3))
    actual = check_import(tmp_path, net.model(x), {"a": np.ones(3, np.float32)})
    assert len(actual.keys) == len(net.weights)


def test_numbers_beside_names(tmp_path: Path) -> None:
    """An attribute is not a number: the one of ``m.0.fc`` is ``m_part_0``."""
    net = ScopedNet()
    x = net.linear("m.0.fc", net.input("x", 2, 4), 4, 4)
    x = net.run("Mul", "m", x, net.weight("m.scale", 4))
    x = net.linear("m.norm", net.linear("m.1.fc", x, 4, 4), 4, 4)
    actual = check_import(tmp_path, net.model(x), net.feeds())
    assert actual.keys == set(net.weights)
    assert '"m_part_0": "m.0.fc"' in actual.source


def test_a_module_without_layers_beside_numbers(tmp_path: Path) -> None:
    net = ScopedNet()
    x = net.linear("m.0", net.input("x", 2, 4), 4, 4)
    for op in ("Sin", "Cos", "Tanh", "Sigmoid", "Softplus", "Relu"):
        x = net.run("Add", "m.act", net.run(op, "m.act", x), x)
    x = net.linear("m.1", x, 4, 4)
    actual = check_import(tmp_path, net.model(x), net.feeds())
    assert actual.keys == set(net.weights)


def test_lists_with_few_modules_at_large_numbers(tmp_path: Path) -> None:
    """Gaps become modules: a short file must not request millions of them."""
    net = ScopedNet()
    x = net.input("x", 2, 4)
    for number in range(4):
        x = net.linear(f"m.{number}.{9000 + number}.fc", x, 4, 4)
        x = net.run("Mul", "", x, net.weight(f"n.{9000 + number}.scale", 4))
    actual = check_import(tmp_path, net.model(x), net.feeds())
    assert "m.3.9003.fc.weight" in actual.keys
    assert "part_9003 = nn.Linear(4, 4)" in actual.source
    assert len(list(actual.module.modules())) < 1000


def test_a_list_in_the_first_module_of_a_list_of_the_same_name(tmp_path: Path) -> None:
    """``layers.0.0`` in ``layers.0`` is ``layers.0`` of its own list, not one of it."""
    net = ScopedNet()
    x = net.input("x", "batch", 3, 4)
    for stage in range(2):
        for depth in range(2):
            path, begin = f"layers.{stage}.layers.{depth}.0", len(net.nodes)
            keys = [f"{path}.norm.{name}" for name in ("weight", "bias")]
            scales = [net.weight(key, 4) for key in keys]
            y = net.run("LayerNormalization", "norm", x, *scales)
            matrix = net.weight(f"onnx::MatMul_{len(net.nodes)}", 4, 4)
            y = net.run("Tanh", "", net.run("MatMul", "proj", y, matrix))
            x = net.run("Add", "", x, y)
            for node in net.nodes[begin:]:
                node.name = f"/layers/layers.{stage}/layers.{depth}.0{node.name}"
    imported = check_import(tmp_path, net.model(x), net.feeds())
    assert imported.keys == {
        f"layers.{stage}.layers.{depth}.0.{leaf}"
        for stage in range(2)
        for depth in range(2)
        for leaf in ("norm.weight", "norm.bias", "proj.weight")
    }


PAIRS = [
    (("stage", "0", "norm"), ("stage", "layers", "0", "norm")),
    (("stage", "0", "out", "0"), ("stage", "layers", "0", "out", "0")),
    (("head", "norm"), ("head", "norm")),
]


@pytest.mark.parametrize(
    ("scope", "path"),
    [
        (("stage", "0", "proj"), ("stage", "layers", "0", "proj")),
        (("stage", "proj"), ("stage", "proj")),
        (("head", "proj"), ("head", "proj")),
    ],
)
def test_other_nodes_of_a_scope_follow(
    scope: tuple[str, ...], path: tuple[str, ...]
) -> None:
    assert scope_paths(PAIRS).path(scope) == path


def test_scopes_of_several_modules_stay() -> None:
    """A tied weight has the key of another module."""
    pairs = [*PAIRS, (("stage", "0", "proj"), ("stage", "0", "proj"))]
    assert scope_paths(pairs).path(("stage", "0")) == ("stage", "0")
