"""Layers that the author's code does not call: it reads their weights itself."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn
from burn_import import load
from burn_import.pipeline import import_model
from burn_ir.types import Array
from tests.importer.exported_files import call, meta, program, ref, saved

ATTENTION = "L__self__,,Net;L__self__attention,attention,author.Attention"


def weights(extra: str) -> dict[str, np.ndarray[Any, Any]]:
    """Return a matrix at ``attention.qkv.weight``, and a vector beside it."""
    rng = np.random.default_rng(0)
    return {
        "attention.qkv.weight": rng.normal(size=(6, 4)).astype(np.float32),
        f"attention.qkv.{extra}": rng.normal(size=6).astype(np.float32),
    }


def attention(folder: Path, extra: str) -> Any:
    """Return ``exp(linear(x, qkv.weight) + exp(qkv.<extra>))``."""
    wide = meta("float32", [3, 6])
    nodes = [
        call("aten.exp.default", "e", ATTENTION, self=ref(f"p_attention_qkv_{extra}")),
        call(
            "aten.linear.default",
            "y",
            ATTENTION,
            input=ref("x"),
            weight=ref("p_attention_qkv_weight"),
        ),
        call("aten.add.Tensor", "z", ATTENTION, self=ref("y"), other=ref("e")),
        call("aten.exp.default", "w", ATTENTION, self=ref("z")),
    ]
    values = {"e": meta("float32", [6]), **dict.fromkeys(("y", "z", "w"), wide)}
    inputs = {"x": meta("float32", [3, 4])}
    content = program(inputs, weights(extra), nodes, values, ["w"])
    return load(saved(folder, content, weights(extra)))


@pytest.mark.parametrize("extra", ["bias", "gain"])
def test_all_weights_of_a_module_keep_its_path(extra: str, tmp_path: Path) -> None:
    module = attention(tmp_path, extra)
    stored = weights(extra)
    state = module.state_dict()
    assert state.keys() == stored.keys()
    for key, value in stored.items():
        np.testing.assert_array_equal(state[key], value)
    x = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    matrix, vector = stored.values()
    expected = np.exp(x @ matrix.T + np.exp(vector))
    np.testing.assert_allclose(module(burn.tensor(x)).numpy(), expected, rtol=1e-4)


def test_a_weight_and_its_bias_are_a_layer(tmp_path: Path) -> None:
    modules = dict(attention(tmp_path, "bias").modules())
    assert isinstance(modules["attention.qkv"], nn.Linear)


def test_other_tensors_beside_a_weight_make_no_layer(tmp_path: Path) -> None:
    modules = dict(attention(tmp_path, "gain").modules())
    assert not any(isinstance(module, nn.Linear) for module in modules.values())


def scaled(path: str, x: str) -> list[Any]:
    """Return the nodes of ``proj(x) * exp(extra.gain) + extra.shift``, in a module."""
    name = path.replace(".", "_")
    scope = f"L__self__,,Net;L__self__{name},{path},author.Scaled"
    linear = f"{scope};L__self__{name}_proj,{path}.proj,torch.nn.modules.linear.Linear"
    weights = {k: ref(f"p_{name}_proj_{k}") for k in ("weight", "bias")}
    y, gain = f"{name}_linear", f"{name}_gain"
    return [
        call("aten.linear.default", y, linear, input=ref(x), **weights),
        call("aten.exp.default", gain, scope, self=ref(f"p_{name}_extra_gain")),
        call("aten.mul.Tensor", f"{name}_z", scope, self=ref(y), other=ref(gain)),
        call(
            "aten.add.Tensor",
            f"{name}_y",
            scope,
            self=ref(f"{name}_z"),
            other=ref(f"p_{name}_extra_shift"),
        ),
    ]


@pytest.mark.parametrize("nested", [False, True])
def test_classes_of_arrays_of_other_sizes_are_one(tmp_path: Path, nested: bool) -> None:
    """Also those in modules of which one contains the other."""
    widths = {"first": (4, 6), "second": (6, 8)}
    last, inside = ("third.inner", "third") if nested else ("third", "fourth")
    widths |= {last: (8, 10), inside: (10, 12)}
    stored: dict[str, Array] = {}
    values: dict[str, Any] = {}
    nodes: list[Any] = []
    x, rng = "x", np.random.default_rng(0)
    for path, (before, after) in widths.items():
        name = path.replace(".", "_")
        stored[f"{path}.proj.weight"] = rng.normal(size=(after, before))
        stored[f"{path}.proj.bias"] = rng.normal(size=after)
        stored[f"{path}.extra.gain"] = rng.normal(size=after)
        stored[f"{path}.extra.shift"] = rng.normal(size=after)
        nodes += scaled(path, x)
        x = f"{name}_y"
        wide = meta("float32", [3, after])
        values |= {f"{name}_gain": meta("float32", [after])}
        values |= dict.fromkeys((x, f"{name}_z", f"{name}_linear"), wide)
    arrays = {key: array.astype(np.float32) for key, array in stored.items()}
    content = program({"x": meta("float32", [3, 4])}, arrays, nodes, values, [x])
    file = saved(tmp_path, content, arrays)
    text = import_model(file).text
    assert (text.count("class Extra"), text.count("class Scaled")) == (0, 1)
    module: Any = load(file)
    assert module.state_dict().keys() == arrays.keys()
    expected = y = rng.normal(size=(3, 4)).astype(np.float32)
    for path in widths:
        weight, bias = (arrays[f"{path}.proj.{k}"] for k in ("weight", "bias"))
        expected = (expected @ weight.T + bias) * np.exp(arrays[f"{path}.extra.gain"])
        expected = expected + arrays[f"{path}.extra.shift"]
    np.testing.assert_allclose(module(burn.tensor(y)).numpy(), expected, rtol=1e-4)
