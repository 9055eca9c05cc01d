"""Recurrent layers: recovered from exporters' nodes, named as before, trainable."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import burn
from burn import Autodiff, Cpu, ops
from burn_import.options import Options
from burn_import.pipeline import import_model
from tests.importer.passes.recurrent.recurrent_files import (
    GATES,
    HIDDEN,
    INPUT,
    NAMES,
    STATES,
    Array,
    Build,
    Stack,
    feeds,
    packed,
    parameters,
    torchscript,
)
from tests.modules import call, generate, import_file, onnxruntime_outputs

STACKS = [
    Stack(kind, layers, ways, bias, batch_first, given)
    for kind, layers, ways, bias, batch_first, given in itertools.product(
        STATES, (1, 2), (1, 2), (True,), (False, True), (False, True)
    )
] + [
    Stack("LSTM", 3, 2, False),
    Stack("GRU", 2, 1, False, given=True),
    Stack("LSTM", 2, 2, reads=("y",)),
    Stack("LSTM", 2, 1, reads=("y", "c")),
    Stack("GRU", 2, 1, reads=("h",)),
    Stack("LSTM", 1, 2, batch_first=False, reads=("h",)),
]


def module_of(path: Path, folder: Path) -> Any:
    """Return the generated class, loaded."""
    written, name = generate(path, folder)
    return getattr(import_file(written), name).load()


def same_as_onnxruntime(path: Path, net: Any, given: dict[str, Array]) -> None:
    expected = onnxruntime_outputs(path, given)
    for got, want in zip(call(net, list(given.values())), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("stack", STACKS, ids=str)
def test_an_exported_stack_is_one_layer(stack: Stack, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    expected = torchscript(path, stack)
    net = module_of(path, tmp_path)
    for first, second in ((2, 5), (4, 3)):
        same_as_onnxruntime(path, net, feeds(stack, first, second))
    actual = {key: value.numpy() for key, value in net.state_dict().items()}
    if "y" not in stack.reads:
        del expected["out.weight"]
    assert set(actual) == set(expected)
    for key, array in expected.items():
        np.testing.assert_array_equal(actual[key], array, err_msg=key)


def test_the_source_says_what_the_author_wrote(tmp_path: Path) -> None:
    torchscript(tmp_path / "m.onnx", Stack("LSTM", 2, 2, given=True))
    text = import_model(tmp_path / "m.onnx", Options()).text
    result = "nn.LSTM(3, 4, num_layers=2, batch_first=True, bidirectional=True)"
    assert f"self.rnn = {result}" in text
    assert "x, (h, c) = self.rnn(x, (h0, c0))" in text
    torchscript(tmp_path / "m.onnx", Stack("GRU", batch_first=False, reads=("y",)))
    text = import_model(tmp_path / "m.onnx", Options()).text
    assert "self.rnn = nn.GRU(3, 4)" in text and "x, _ = self.rnn(x)" in text
    torchscript(tmp_path / "m.onnx", Stack("RNN", bias=False, reads=("h",)))
    text = import_model(tmp_path / "m.onnx", Options()).text
    result = 'nn.RNN(3, 4, nonlinearity="relu", bias=False, batch_first=True)'
    assert f"self.rnn = {result}" in text
    assert "_, h = self.rnn(x)" in text


def test_no_local_name_looks_like_a_one(tmp_path: Path) -> None:
    torchscript(tmp_path / "m.onnx", Stack("LSTM", reads=("y",)), "/net/l")
    text = import_model(tmp_path / "m.onnx", Options()).text
    assert "x, _ = self.l(x)" in text


def variant(path: Path, kind: str, **attrs: Any) -> Path:
    """Write a model of one ONNX operator with all of its results."""
    b = Build(3)
    ways = 2 if attrs.get("direction") == "bidirectional" else 1
    arrays = packed(kind, [parameters(b, kind, INPUT) for _ in range(ways)])
    weights = [b.weight(name, a) for name, a in zip("WRB", arrays, strict=True)]
    extra: list[str] = attrs.pop("extra", [])
    if "P" in extra:
        b.weight("P", b.normal(ways, 3 * HIDDEN))
    results = ["Y", "Y_h", "Y_c"][: 1 + STATES[kind]]
    b.op(kind, ["x", *weights, *extra], results, "", hidden_size=HIDDEN, **attrs)
    return b.save(path, {"x": ["t", "n", INPUT]}, results)


VARIANTS: list[tuple[str, dict[str, Any], bool]] = [
    ("LSTM", {}, True),
    ("LSTM", {"direction": "bidirectional"}, True),
    ("GRU", {"linear_before_reset": 1}, True),
    ("GRU", {"linear_before_reset": 1, "direction": "bidirectional"}, True),
    ("RNN", {}, True),
    ("RNN", {"activations": ["Relu"]}, True),
    ("RNN", {"activations": ["Relu", "Relu"], "direction": "bidirectional"}, True),
    ("RNN", {"activations": ["Relu", "Tanh"], "direction": "bidirectional"}, False),
    ("RNN", {"activations": ["Sigmoid"]}, False),
    ("LSTM", {"direction": "reverse"}, False),
    ("LSTM", {"activations": ["Sigmoid", "Tanh", "Relu"]}, False),
    ("LSTM", {"clip": 0.2}, False),
    ("LSTM", {"extra": ["", "", "", "P"]}, False),
    ("GRU", {"direction": "reverse", "linear_before_reset": 1}, False),
    ("GRU", {}, False),
]


@pytest.mark.parametrize(("kind", "attrs", "is_layer"), VARIANTS)
def test_what_pytorch_has_not_stays_a_function(
    kind: str, attrs: dict[str, Any], is_layer: bool, tmp_path: Path
) -> None:
    path = variant(tmp_path / "model.onnx", kind, **attrs)
    text = import_model(path, Options()).text
    assert (f"nn.{kind}(" in text) == is_layer
    assert (f"ops.{kind.lower()}(" in text) != is_layer
    net = module_of(path, tmp_path)
    for first, second in ((5, 2), (3, 4)):
        x = Build(first).normal(first, second, INPUT)
        same_as_onnxruntime(path, net, {"x": x})


def unfolded(path: Path, kind: str, leaf: str = "_l0") -> dict[str, Array]:
    """Write a model that holds PyTorch's parameters and reorders them at run time."""
    b = Build(5)
    arrays = dict(zip(NAMES, parameters(b, kind, INPUT), strict=True))
    parts = {}
    zero = b.weight("zero", np.array([0], np.int64))
    for name, array in arrays.items():
        b.weight(f"model.rnn.{name}{leaf}", array)
        pieces = [f"{name}.{gate}" for gate in range(GATES[kind])]
        b.op("Split", [f"model.rnn.{name}{leaf}"], pieces, "", axis=0)
        order = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2)}[kind]
        b.op("Concat", [pieces[gate] for gate in order], [f"{name}.o"], "", axis=0)
        parts[name] = f"{name}.o"
    b.op("Concat", [parts["bias_ih"], parts["bias_hh"]], ["both"], "", axis=0)
    turned = [parts["weight_ih"], parts["weight_hh"], "both"]
    for name, part in zip("WRB", turned, strict=True):
        b.op("Unsqueeze", [part, zero], [name], "")
    x = "x"
    if not leaf:
        b.op("Unsqueeze", ["x", zero], ["step"], "")
        x = "step"
    reset = {"linear_before_reset": 1} if kind == "GRU" else {}
    outputs = ["", "last"]
    b.op(kind, [x, "W", "R", "B"], outputs, "", hidden_size=HIDDEN, **reset)
    b.op("Squeeze", ["last", zero], ["y"], "")
    b.save(path, {"x": ["n", INPUT] if not leaf else ["t", "n", INPUT]}, ["y"])
    return {f"model.rnn.{name}{leaf}": array for name, array in arrays.items()}


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("leaf", ["_l0", ""])
def test_parameters_that_the_file_holds_keep_their_names(
    kind: str, leaf: str, tmp_path: Path
) -> None:
    """A cell, whose parameters have no number, was exported as a layer of one step."""
    path = tmp_path / "model.onnx"
    expected = unfolded(path, kind, leaf)
    net = module_of(path, tmp_path)
    actual = {key: value.numpy() for key, value in net.state_dict().items()}
    assert set(actual) == set(expected)
    assert all(np.array_equal(actual[key], array) for key, array in expected.items())
    result = f"nn.{kind}(3, 4)" if leaf else f"nn.{kind}Cell(3, 4)"
    assert result in import_model(path, Options()).text
    for shape in ((2, INPUT), (5, INPUT)):
        x = Build(1).normal(*((3,) if leaf else ()), *shape)
        same_as_onnxruntime(path, net, {"x": x})


def test_modules_of_their_own_stay_two(tmp_path: Path) -> None:
    """Two consecutive layers of one kind and size, in separate scopes."""
    b, x = Build(7), "x"
    for name, width in (("first", INPUT), ("second", HIDDEN)):
        arrays = packed("GRU", [parameters(b, "GRU", width)])
        weights = [b.weight(f"onnx::{name}_{i}", a) for i, a in enumerate(arrays)]
        options = {"hidden_size": HIDDEN, "linear_before_reset": 1}
        b.op("GRU", [x, *weights], [f"{name}_y", ""], f"/{name}/GRU", **options)
        one = b.weight(f"{name}.one", np.array([1], np.int64))
        b.op("Squeeze", [f"{name}_y", one], [f"{name}_s"], f"/{name}/Squeeze")
        x = f"{name}_s"
    path = b.save(tmp_path / "model.onnx", {"x": ["t", "n", INPUT]}, [x])
    text = import_model(path, Options()).text
    assert "self.first = nn.GRU(3, 4)" in text
    assert "self.second = nn.GRU(4, 4)" in text
    same_as_onnxruntime(path, module_of(path, tmp_path), {"x": b.normal(3, 2, INPUT)})


def unrolled(path: Path, steps: int, names: dict[str, str]) -> dict[str, Array]:
    """Write unrolled steps of an LSTM cell; ``x`` of each is the last state."""
    b = Build(11)
    arrays = dict(zip(names.values(), parameters(b, "LSTM", HIDDEN), strict=True))
    for name, array in arrays.items():
        b.weight(name, array)
    h, c = "h0", "c0"
    wi, wh, bi, bh = names.values()
    for k in range(steps):
        scope = f"/cell{f'_{k}' if k else ''}"
        b.op("Gemm", [h, wh, bh], [f"a{k}"], f"{scope}/Gemm", transB=1)
        x = "x" if k == 0 else h
        b.op("Gemm", [x, wi, bi], [f"e{k}"], f"{scope}/Gemm_1", transB=1)
        b.op("Add", [f"a{k}", f"e{k}"], [f"s{k}"], f"{scope}/Add")
        gates = [f"{gate}{k}" for gate in "ifgo"]
        b.op("Split", [f"s{k}"], gates, f"{scope}/Split", axis=1)
        for gate, kind in zip(gates, FUNCTIONS, strict=True):
            b.op(kind, [gate], [f"{gate}.a"], f"{scope}/{gate}")
        b.op("Mul", [f"f{k}.a", c], [f"k{k}"], f"{scope}/Mul")
        b.op("Mul", [f"i{k}.a", f"g{k}.a"], [f"n{k}"], f"{scope}/Mul_1")
        b.op("Add", [f"k{k}", f"n{k}"], [f"c{k}.new"], f"{scope}/Add_1")
        b.op("Tanh", [f"c{k}.new"], [f"t{k}"], f"{scope}/Tanh")
        b.op("Mul", [f"o{k}.a", f"t{k}"], [f"h{k}.new"], f"{scope}/Mul_2")
        h, c = f"h{k}.new", f"c{k}.new"
    shapes = dict.fromkeys(("x", "h0", "c0"), ["n", HIDDEN])
    b.save(path, shapes, [h, c])
    return arrays


#: The activations of LSTM gates.
FUNCTIONS = ("Sigmoid", "Sigmoid", "Tanh", "Sigmoid")


def test_steps_with_the_same_weights_are_calls_of_one_cell(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    expected = unrolled(path, 3, {name: f"cell.{name}" for name in NAMES})
    text = import_model(path, Options()).text
    assert text.count("nn.LSTMCell(4, 4)") == 1
    assert text.count("for _ in range(3):") == text.count("self.cell(") == 1
    net = module_of(path, tmp_path)
    actual = {key: value.numpy() for key, value in net.state_dict().items()}
    assert set(actual) == set(expected)
    assert all(np.array_equal(actual[key], array) for key, array in expected.items())
    for n in (2, 5):
        given = {name: Build(n).normal(n, HIDDEN) for name in ("x", "h0", "c0")}
        same_as_onnxruntime(path, net, given)


def test_linear_layers_of_the_author_stay_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    leaves = ("x2h.weight", "h2h.weight", "x2h.bias", "h2h.bias")
    names = {n: f"cell.{leaf}" for n, leaf in zip(NAMES, leaves, strict=True)}
    expected = unrolled(path, 2, names)
    net = module_of(path, tmp_path)
    assert set(net.state_dict()) == set(expected)
    assert "nn.LSTMCell" not in import_model(path, Options()).text


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_an_imported_layer_trains(kind: str, tmp_path: Path) -> None:
    """Gradients are slopes of the loss, and steps along them decrease it."""
    stack = Stack(kind, 2, 2, reads=("y",), activation="Tanh")
    torchscript(tmp_path / "model.onnx", stack)
    written, name = generate(tmp_path / "model.onnx", tmp_path)
    net = getattr(import_file(written), name).load(backend=Autodiff(Cpu()))
    x = burn.tensor(feeds(stack, 3, 4)["x"])

    def loss() -> Any:
        return ops.mean((net(x) - 1.0) ** 2.0)

    start = float(loss().numpy())
    grads = loss().backward()
    rng = np.random.default_rng(3)
    for path, parameter in net.parameters():
        value = parameter.value.detach()
        direction = rng.standard_normal(parameter.shape).astype(np.float32)
        ends = []
        for sign in (1, -1):
            parameter.set(
                burn.tensor(value.numpy() + sign * np.float32(5e-3) * direction)
            )
            ends.append(float(loss().numpy()))
        parameter.set(value)
        slope = float(np.sum(grads[parameter].numpy() * direction))
        np.testing.assert_allclose(
            slope, (ends[0] - ends[1]) / 1e-2, 2e-2, 2e-3, err_msg=path
        )
    for _ in range(10):
        grads = loss().backward()
        for _, parameter in net.parameters():
            step = 0.3 * grads[parameter].numpy()
            parameter.set(burn.tensor(parameter.value.detach().numpy() - step))
    assert float(loss().numpy()) < 0.7 * start


def test_only_float32_weights_are_a_layer(tmp_path: Path) -> None:
    b = Build()
    arrays = packed("RNN", [parameters(b, "RNN", INPUT)])
    names = [
        b.weight(n, a.astype(np.float16)) for n, a in zip("WRB", arrays, strict=True)
    ]
    nodes = [helper.make_node("Cast", ["x"], ["half"], to=10)]
    nodes.append(helper.make_node("RNN", ["half", *names], ["y"], hidden_size=HIDDEN))
    b.nodes = nodes
    path = b.save(tmp_path / "m.onnx", {"x": ["t", "n", INPUT]}, ["y"])
    assert "ops.rnn(" in import_model(path, Options()).text
