"""Networks of numbered layers, from weights and user hints."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn.record import write_record
from burn_import import Hints, Options, load
from burn_import.build.models import options_in
from burn_import.options import ACTIVATIONS
from burn_import.pipeline import import_model
from burn_import.transform import WrongOptions
from burn_ir import UnsupportedModel
from tests.cli.commands import run
from tests.importer.recipes.onnx_net import OnnxNet
from tests.importer.recipes.vision_references import REFERENCES
from tests.modules import Array, import_file

Shapes = Mapping[str, tuple[int, ...]]


def saved(folder: Path, state: Mapping[str, Array]) -> Path:
    """Return the record of a state dict."""
    path = folder / "net.safetensors"
    write_record(path, list(state.items()))
    return path


def drawn(shapes: Shapes) -> dict[str, Array]:
    """Return random weights of these shapes."""
    rng = np.random.default_rng(6)
    return {k: rng.normal(size=s).astype(np.float32) for k, s in shapes.items()}


def imported(path: Path, **hints: str) -> Any:
    """Return the model of a file, with these hints."""
    return load(path, Options(class_name="Net", stem="net", hints=Hints(**hints)))


def source(path: Path, **hints: str) -> str:
    """Return the source of a file, with these hints."""
    options = Options(class_name="Net", stem="net", hints=Hints(**hints))
    return import_model(path, options).text


MLP: Shapes = {
    "0.weight": (6, 4),
    "0.bias": (6,),
    "2.weight": (6,),
    "2.bias": (6,),
    "3.weight": (5, 6),
    "6.weight": (3, 5),
    "6.bias": (3,),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_stand_where_numbers_are_left_out(
    name: str, tmp_path: Path
) -> None:
    state = drawn(MLP)
    path = saved(tmp_path, state)
    model = imported(path, activation=name)
    assert set(model.state_dict()) == set(state)
    x = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    net = OnnxNet(x.shape)
    act = {"none": "Identity", "silu": "silu", "gelu": "gelu"}.get(name, name.title())

    def active(value: str) -> str:
        plain = act in ("silu", "gelu")
        return net.call(act, value) if plain else net.op(act, value)

    y = active(net.linear("0", "x", (4, 6)))
    y = net.layer_norm("2", y, 6, 1e-5)
    y = active(net.linear("3", y, (6, 5)))
    out = net.linear("6", y, (5, 3))
    net.state |= {**state, "3.bias": np.zeros(5, np.float32)}
    expected = net.run(out, x)
    actual = model(burn.tensor(x)).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


CNN: Shapes = {
    "features.0.weight": (4, 3, 3, 3),
    "features.0.bias": (4,),
    "features.1.weight": (4,),
    "features.1.bias": (4,),
    "features.1.running_mean": (4,),
    "features.4.weight": (8, 4, 3, 3),
    "features.4.bias": (8,),
    "classifier.1.weight": (6, 32),
    "classifier.1.bias": (6,),
    "classifier.4.weight": (5, 6),
    "classifier.4.bias": (5,),
}


@pytest.mark.parametrize("pool", ["max", "average", "none"])
@pytest.mark.parametrize("padding", ["same", "valid"])
def test_convolutions_before_linear_layers(
    padding: str, pool: str, tmp_path: Path
) -> None:
    state = drawn(CNN)
    state["features.1.running_var"] = np.full(4, 2, np.float32)
    # Sorted, as safetensors have them: the linear layers come first.
    path = saved(tmp_path, dict(sorted(state.items())))
    model = imported(path, activation="relu", padding=padding, pool=pool)
    assert set(model.state_dict()) == set(state)
    for size in ((16, 16), (14, 20)):
        x = np.random.default_rng(1).normal(size=(2, 3, *size)).astype(np.float32)
        net = OnnxNet(x.shape)

        def pooled(value: str, net: OnnxNet = net) -> str:
            return value if pool == "none" else net.pool(pool, value, 2, 2, 0)

        pad = 1 if padding == "same" else 0
        y = net.conv("features.0", "x", (3, 4), 3, padding=pad, bias=True)
        y = pooled(net.call("relu", net.norm("features.1", y, 4)))
        y = net.conv("features.4", y, (4, 8), 3, padding=pad, bias=True)
        y = net.flatten(net.adaptive(pooled(net.call("relu", y)), 2), 1)
        y = net.call("relu", net.linear("classifier.1", y, (32, 6)))
        out = net.linear("classifier.4", y, (6, 5))
        net.state |= state
        expected = net.run(out, x)
        actual = model(burn.tensor(x)).numpy()
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def test_what_has_to_be_told_is_listed(tmp_path: Path) -> None:
    path = saved(tmp_path, drawn(CNN) | {"features.1.running_var": np.ones(4, "f4")})
    with pytest.raises(UnsupportedModel) as caught:
        source(path, activation="relu")
    padding = (
        "weights do not determine its padding; pass --padding same or --padding valid"
    )
    pool = (
        "weights do not determine the pool before it; pass --pool max, average or none"
    )
    assert [problem.message for problem in caught.value.problems] == [
        f"features.0: {padding}",
        f"features.4: {pool}",
        f"features.4: {padding}",
        f"classifier.1: {pool}",
    ]


def test_what_was_told_stands_in_the_module(tmp_path: Path) -> None:
    path = saved(tmp_path, drawn(CNN) | {"features.1.running_var": np.ones(4, "f4")})
    text = source(path, activation="tanh", padding="same", pool="average")
    text = " ".join(text.split())
    for words in ("--activation tanh", "--padding same", "--pool average", "Strides"):
        assert words in text


@pytest.mark.parametrize(
    "shapes",
    [
        {"a.weight": (3, 2), "b.weight": (4, 3)},
        {"0.weight": (3, 2), "2.weight": (4, 5)},
        {"0.weight": (3, 2), "1.scale": (3,)},
        {"0.weight": (3, 2), "x": (3,)},
        {"a.0.weight": (3, 2), "b.0.weight": (3, 3)},
        {"0.weight": (3, 2), "2.weight": (3, 3, 1)},
        {"0.weight": (3,), "0.bias": (3,)},
        {"0.weight_ih_l0": (8, 3), "0.weight_hh_l0": (8, 2)},
    ],
    ids=str,
)
def test_other_weights_take_no_activation(shapes: Shapes, tmp_path: Path) -> None:
    path = saved(tmp_path, drawn(shapes))
    with pytest.raises(UnsupportedModel, match="expected for --activation weights of"):
        source(path, activation="relu")


def test_without_activation_the_skeleton_says_how(tmp_path: Path) -> None:
    text = " ".join(source(saved(tmp_path, drawn(MLP))).split())
    assert "--activation" in text and "NotImplementedError" in text


def test_a_list_of_convolutions_is_the_model_itself(tmp_path: Path) -> None:
    shapes = {"0.weight": (4, 3, 3), "2.weight": (2, 4, 3), "4.weight": (5, 2)}
    path = saved(tmp_path, drawn(shapes))
    model = imported(path, activation="relu", padding="valid")
    assert set(model.state_dict()) == set(shapes)
    text = source(path, activation="relu", padding="valid")
    assert "class Net(nn.Sequential):" in text
    assert "result: Tensor = self[4](" in text
    result = model(burn.tensor(np.ones((2, 3, 9), np.float32)))
    assert result.shape == (2, 5)


def test_slopes_are_activations(tmp_path: Path) -> None:
    shapes = {"net.0.weight": (4, 3), "net.1.weight": (4,), "net.3.weight": (2, 4)}
    state = drawn(shapes)
    path = saved(tmp_path, state)
    model = imported(path, activation="relu")
    assert set(model.state_dict()) == set(state)
    x = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
    y = x @ state["net.0.weight"].T
    y = np.where(y > 0, y, y * state["net.1.weight"]) @ state["net.3.weight"].T
    actual = model(burn.tensor(x)).numpy()
    np.testing.assert_allclose(actual, y, rtol=1e-5, atol=1e-5)


def test_the_command_takes_hints(tmp_path: Path) -> None:
    path, output = saved(tmp_path, drawn(MLP)), tmp_path / "model.py"
    answer = run(path, "-o", output, "--activation", "relu")
    assert answer.exit_code == 0, answer.output
    assert re.search("note: .*--activation relu", answer.stderr)
    module: Any = import_file(output)
    model = module.Model.load()
    assert model(burn.tensor(np.ones((2, 4), np.float32))).shape == (2, 3)
    answer = run(path, "-o", tmp_path / "r.safetensors", "--activation", "relu")
    assert answer.exit_code == 2 and "expected a module as output" in answer.output
    answer = run(path, "-o", output, "--activation", "swish")
    assert answer.exit_code == 2


def test_hints_are_checked_everywhere(tmp_path: Path) -> None:
    path = saved(tmp_path, drawn(MLP))
    with pytest.raises(WrongOptions) as caught:
        source(path, activation="swish", padding="full", pool="min")
    assert [problem.message for problem in caught.value.problems] == [
        "expected an activation among relu, gelu, tanh, silu, sigmoid, none, "
        "got 'swish'",
        "expected a padding among same, valid, got 'full'",
        "expected a pool among max, average, none, got 'min'",
    ]
    hints = {"activation": "relu", "padding": "same", "pool": "max", "config": "c.json"}
    actual = options_in({**hints, "top-level-key": "model"})
    assert actual == Options(hints=Hints(top_level_key="model", **hints))
    with pytest.raises(ValueError, match="pool: expected one of max, average, none"):
        options_in({"pool": "min"})


def test_a_configuration_may_be_elsewhere(tmp_path: Path) -> None:
    reference, _ = REFERENCES["vit"]
    net = OnnxNet((1, 3, 12, 12))
    reference(net, "x")
    path = saved(tmp_path, net.state)
    config = tmp_path / "other.json"
    config.write_text('{"model_type": "vit", "num_attention_heads": 4}')
    output = tmp_path / "model.py"
    assert run(path, "-o", output, "--config", config).exit_code == 0
    assert "nn.MultiheadAttention(16, 4, batch_first=True)" in output.read_text()
    answer = run(path, "-o", output, "--config", tmp_path / "missing.json")
    assert answer.exit_code == 3 and "missing.json" in answer.stderr
