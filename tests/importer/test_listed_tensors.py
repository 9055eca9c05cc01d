"""Tensors that a program lists: each is at its key, regardless of its readers."""

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn
from burn_import import load
from burn_ir.types import Array
from tests.importer.exported_files import call, meta, program, ref, saved
from tests.importer.pytorch_files import tensor
from tests.importer.script_files import Script, example, module

X = np.random.default_rng(3).normal(size=(2, 3)).astype(np.float32)
X_TYPE = {"x": meta("float32", [2, 3])}
OUTER = "L__self__,,Net"
INNER = f"{OUTER};L__self___inner,inner,Inner"


def drawn(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def imported(
    folder: Path,
    nodes: Sequence[Any],
    weights: Mapping[str, Array],
    buffers: Sequence[str] = (),
) -> Any:
    """Return the module of a .pt2 program of float32[2, 3] values."""
    names = [node["outputs"][0]["as_tensor"]["name"] for node in nodes]
    values = {name: meta("float32", [2, 3]) for name in names}
    content = program(X_TYPE, weights, nodes, values, names[-1:], buffers)
    model: Any = load(saved(folder, content, weights))
    assert sorted(model.state_dict()) == sorted(weights)
    model.load_state_dict(dict(weights))
    return model


def result(model: Any) -> Array:
    actual: Array = model(burn.tensor(X)).numpy()
    return actual


def times(
    name: str, x: str, y: str, modules: str = OUTER, operator: str = "aten.mul.Tensor"
) -> dict[str, Any]:
    return call(operator, name, modules, self=ref(x), other=ref(y))


def linear(name: str, x: str, key: str, modules: str) -> dict[str, Any]:
    stored = ref(f"p_{key.replace('.', '_')}")
    return call("aten.linear.default", name, modules, input=ref(x), weight=stored)


def test_buffers_of_ones_and_zeros_are_read(tmp_path: Path) -> None:
    nodes = [
        times("y", "x", "b_std"),
        call("aten.add.Tensor", "z", self=ref("y"), other=ref("b_mean")),
    ]
    weights = {"std": np.ones(3, np.float32), "mean": np.zeros(3, np.float32)}
    model = imported(tmp_path, nodes, weights, ["std", "mean"])
    np.testing.assert_array_equal(result(model), X)
    model.load_state_dict({"std": drawn(3), "mean": drawn(3, seed=1)})
    expected = X * drawn(3) + drawn(3, seed=1)
    np.testing.assert_allclose(result(model), expected, rtol=1e-6)


@pytest.mark.parametrize("names", [("dense",), ("dense", "out")])
def test_a_bias_of_the_module_around_a_linear_layer(
    tmp_path: Path, names: Sequence[str]
) -> None:
    """The product and the sum are one step outside of the module with the weight."""
    layer = f"{OUTER};L__self___layer,layer,Layer"
    inner = f"{layer};L__self___layer_inner,layer.inner,Inner"
    weights, nodes, before, expected = {}, [], "x", X
    for seed, name in enumerate(names):
        first, last = f"layer.inner.qkv_{name}.weight", f"layer.inner.{name}.weight"
        weights[first] = drawn(3, 3, seed=3 * seed)
        weights[last] = drawn(3, 3, seed=3 * seed + 1)
        weights[f"layer.inner.{name}_bias"] = drawn(3, seed=3 * seed + 2)
        a, b, c, d, e, f = (f"{kind}{seed}" for kind in "abcdef")
        nodes += [
            call("aten.sin.default", f, layer, self=ref(before)),
            linear(a, f, first, f"{inner};L__qkv{seed},layer.inner.qkv_{name},Linear"),
            call("aten.tanh.default", b, inner, self=ref(a)),
            linear(c, b, last, f"{inner};L__{seed},layer.inner.{name},Linear"),
            times(d, c, f"p_layer_inner_{name}_bias", layer, "aten.add.Tensor"),
            times(e, before, d, layer, "aten.add.Tensor"),
        ]
        bias = weights[f"layer.inner.{name}_bias"]
        hidden = np.tanh(np.sin(expected) @ weights[first].T)
        before, expected = e, expected + hidden @ weights[last].T + bias
    model = imported(tmp_path, nodes, weights)
    np.testing.assert_allclose(result(model), expected, rtol=1e-5)


def test_a_module_reads_a_tensor_inside_of_another(tmp_path: Path) -> None:
    weights = {"inner.scale": drawn(3), "inner.lin.weight": drawn(3, 3, seed=1)}
    linear = f"{INNER};L__self___inner_lin,inner.lin,Linear"
    given = {"input": ref("b"), "weight": ref("p_inner_lin_weight")}
    nodes = [
        times("a", "x", "p_inner_scale"),
        call("aten.tanh.default", "b", INNER, self=ref("a")),
        call("aten.linear.default", "c", linear, **given),
        call("aten.tanh.default", "y", INNER, self=ref("c")),
    ]
    model = imported(tmp_path, nodes, weights)
    expected = np.tanh(np.tanh(X * drawn(3)) @ drawn(3, 3, seed=1).T)
    np.testing.assert_allclose(result(model), expected, rtol=1e-6)


def test_a_module_reads_a_tensor_around_it(tmp_path: Path) -> None:
    weights = {"scale": drawn(3), "inner.shift": drawn(3, seed=1)}
    nodes = [
        times("a", "x", "p_inner_shift", INNER),
        call("aten.tanh.default", "b", INNER, self=ref("a")),
        times("c", "b", "p_scale", INNER),
        times("y", "c", "p_scale"),
    ]
    model = imported(tmp_path, nodes, weights)
    expected = np.tanh(X * drawn(3, seed=1)) * drawn(3) ** 2
    np.testing.assert_allclose(result(model), expected, rtol=1e-6)


def test_the_module_around_a_parameter_list_reads_it(tmp_path: Path) -> None:
    weights = {"scales.0": drawn(3), "scales.1": drawn(3, seed=1)}
    plain = call("aten.mul.Tensor", "a", self=ref("x"), other=ref("p_scales_0"))
    plain["metadata"] = {}
    nodes = [
        plain,
        call("aten.tanh.default", "b", self=ref("a")),
        times("y", "b", "p_scales_1"),
    ]
    model = imported(tmp_path, nodes, weights)
    assert isinstance(model.scales, nn.ParameterList)
    expected = np.tanh(X * drawn(3)) * drawn(3, seed=1)
    np.testing.assert_allclose(result(model), expected, rtol=1e-6)


def test_a_parametrization_reads_the_original_beside_it(tmp_path: Path) -> None:
    stack = f"{OUTER};L__self___p,lin.parametrizations.weight,List"
    inner = f"{stack};L__self___p_0,lin.parametrizations.weight.0,Scaled"
    weights = {
        "lin.parametrizations.weight.original": drawn(3),
        "lin.parametrizations.weight.0.factor": drawn(3, seed=1),
    }
    first, second = ("p_" + key.replace(".", "_") for key in weights)
    kind = meta("float32", [3])
    nodes = [
        times("w", first, second, inner),
        call("aten.tanh.default", "v", inner, self=ref("w")),
        times("y", "x", "v"),
    ]
    values = {"w": kind, "v": kind, "y": meta("float32", [2, 3])}
    content = program(X_TYPE, weights, nodes, values, ["y"])
    model: Any = load(saved(tmp_path, content, weights))
    assert sorted(model.state_dict()) == sorted(weights)
    expected = X * np.tanh(drawn(3) * drawn(3, seed=1))
    np.testing.assert_allclose(result(model), expected, rtol=1e-6)


def test_a_tied_layer_that_reads_the_key_of_a_module_without_a_call(
    tmp_path: Path,
) -> None:
    """The weight of ``head`` is joined with another one: no class holds it."""
    table = drawn(5, 3)
    weights = {"inner.words.weight": table, "head.weight": table, "head.bias": drawn(7)}
    weights["more"] = drawn(3, 2)
    words = f"{INNER};L__words,inner.words,Embedding"
    parts = {"as_tensors": [{"name": "t"}, {"name": "p_more"}]}
    nodes = [
        call(
            "aten.embedding.default",
            "a",
            words,
            weight=ref("p_head_weight"),
            indices=ref("x"),
        ),
        call("aten.tanh.default", "b", INNER, self=ref("a")),
        call("aten.t.default", "t", self=ref("p_head_weight")),
        call("aten.cat.default", "w", tensors=parts, dim={"as_int": 1}),
        call("aten.matmul.default", "c", self=ref("b"), other=ref("w")),
        times("y", "c", "p_head_bias", operator="aten.add.Tensor"),
    ]
    shapes = {"a": [4, 3], "b": [4, 3], "t": [3, 5], "w": [3, 7], "c": [4, 7]}
    values = {name: meta("float32", shape) for name, shape in shapes.items()}
    values["y"] = values["c"]
    content = program({"x": meta("int64", [4])}, weights, nodes, values, ["y"])
    model: Any = load(saved(tmp_path, content, weights))
    assert sorted(model.state_dict()) == sorted(weights)
    assert isinstance(model.inner.words, nn.Embedding)
    assert model.inner.words.weight is model.head_weight
    ids = np.array([4, 0, 2, 4])
    joined = np.concatenate([table.T, weights["more"]], 1)
    expected = np.tanh(table[ids]) @ joined + weights["head.bias"]
    np.testing.assert_allclose(model(burn.tensor(ids)).numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("norm", ["layer_norm", "rms_norm"])
def test_norms_without_weights_have_none(norm: str, tmp_path: Path) -> None:
    shape: dict[str, Any] = {"normalized_shape": {"as_ints": [3]}}
    nodes = [
        call(f"aten.{norm}.default", "a", input=ref("x"), **shape),
        times("y", "a", "p_scale"),
    ]
    weights = {"scale": drawn(3)}
    model = imported(tmp_path, nodes, weights)
    centered = X - X.mean(1, keepdims=True) * (norm == "layer_norm")
    epsilon = 1e-5 if norm == "layer_norm" else np.finfo(np.float32).eps
    unit = centered / np.sqrt((centered**2).mean(1, keepdims=True) + epsilon)
    np.testing.assert_allclose(result(model), unit * drawn(3), rtol=1e-4)


NET = """class Net(Module):
  __parameters__ = ["first", "second", ]
  __buffers__ = ["ones", "unread", ]
  first : Tensor
  second : Tensor
  ones : Tensor
  unread : Tensor
  training : bool
  def forward(self: __torch__.Net,
    x: Tensor) -> Tensor:
    first = self.first
    ones = self.ones
    return torch.mul(torch.mul(x, first), ones)
"""


def test_every_name_of_a_tensor_in_torchscript_is_a_key(tmp_path: Path) -> None:
    tied = tensor("0", drawn(3))
    ones, unread = (tensor(k, np.ones(3, np.float32)) for k in ("1", "2"))
    root = module("Net", first=tied, second=tied, ones=ones, unread=unread)
    script = Script(root, {"__torch__.py": NET}, [example("Float", 2, 3)])
    model: Any = load(script.saved(tmp_path))
    assert sorted(model.state_dict()) == ["first", "ones", "second", "unread"]
    assert model.first is model.second
    np.testing.assert_allclose(result(model), X * drawn(3), rtol=1e-6)
    parameters = [key for key, _ in model.parameters()]
    assert parameters and set(parameters) <= {"first", "second"}


def test_a_layer_under_two_keys_has_the_one_of_its_scope(tmp_path: Path) -> None:
    """The decoder holds the encoder, too, and the program names its weights there."""
    inner, last = drawn(3, 3), drawn(3, 3, seed=1)
    weights = {"decoder.encoder.weight": inner, "encoder.weight": inner}
    weights["decoder.last.weight"] = last
    root = "L__self__,,Net"
    encoder = f"{root};L__encoder,encoder,Linear"
    decoder = f"{root};L__decoder,decoder,Decoder;L__last,decoder.last,Linear"
    linear = "aten.linear.default"
    first, second = ref("p_decoder_encoder_weight"), ref("p_decoder_last_weight")
    nodes = [
        call(linear, "a", encoder, input=ref("x"), weight=first),
        call(linear, "y", decoder, input=ref("a"), weight=second),
    ]
    values = {"a": meta("float32", [2, 3]), "y": meta("float32", [2, 3])}
    content = program(X_TYPE, weights, nodes, values, ["y"])
    model: Any = load(saved(tmp_path, content, weights))
    assert isinstance(model.encoder, nn.Linear)
    assert sorted(model.state_dict()) == sorted(weights)
    np.testing.assert_allclose(result(model), X @ inner.T @ last.T, rtol=1e-5)


def test_a_tied_parameter_of_a_class_is_assigned_once(tmp_path: Path) -> None:
    """As in RoBERTa's head, which has the bias of its decoder as its own, too."""
    bias = drawn(3)
    weights = {"decoder.weight": drawn(3, 3, seed=1), "decoder.bias": bias}
    weights["bias"] = bias
    decoder = f"{OUTER};L__decoder,decoder,Linear"
    layer = linear("a", "x", "decoder.weight", decoder)
    bias_argument = {"name": "bias", "arg": ref("p_decoder_bias"), "kind": 1}
    layer["inputs"].append(bias_argument)
    nodes = [layer, call("aten.tanh.default", "y", self=ref("a"))]
    model = imported(tmp_path, nodes, weights)
    assert model.bias is model.decoder.bias
    source = inspect.getsource(type(model))
    assert "self.bias = self.decoder.bias" in source
    assert "self.bias = nn.parameter" not in source
