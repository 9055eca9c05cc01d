"""Models with recurrent layers as exporters write them, and their parameters."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from onnx import helper

from tests.importer.onnx_files import graph, model, saved, stored

Array = np.ndarray[Any, Any]
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STATES = {"LSTM": 2, "GRU": 1, "RNN": 1}
#: The position in ONNX's order of each of PyTorch's gates, and the inverse.
TO_ONNX = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}
INPUT, HIDDEN = 3, 4
NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


@dataclass
class Build:
    """Nodes and weights of a model under construction."""

    seed: int = 0
    nodes: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def op(
        self, kind: str, inputs: list[str], outputs: list[str], name: str, **attrs: Any
    ) -> None:
        """Add a node."""
        self.nodes.append(helper.make_node(kind, inputs, outputs, name, **attrs))

    def weight(self, name: str, array: Any) -> str:
        """Store an array and return its name."""
        self.weights.append(stored(name, array))
        return name

    def normal(self, *shape: int) -> Array:
        """Return random numbers that saturate no activation."""
        return (self.rng.standard_normal(shape) * 0.5).astype(np.float32)

    def save(self, path: Path, inputs: dict[str, Any], outputs: list[str]) -> Path:
        """Write the model to ``path`` and return it."""
        proto = graph(self.nodes, inputs, tuple(outputs), tuple(self.weights))
        return saved(path, model(proto, 14))


def parameters(b: Build, kind: str, width: int, bias: bool = True) -> list[Array]:
    """Return PyTorch's parameters of one layer in one direction."""
    rows = GATES[kind] * HIDDEN
    pair = [b.normal(rows, width), b.normal(rows, HIDDEN)]
    return pair + [b.normal(rows) for _ in range(2 * bias)]


def packed(kind: str, ways: list[list[Array]]) -> list[Array]:
    """Return W, R and optional B of one layer, from each direction's parameters."""
    turned = [[reordered(kind, array) for array in way] for way in ways]
    joined = [[*way[:2], np.concatenate(way[2:])] if way[2:] else way for way in turned]
    return [np.stack(arrays) for arrays in zip(*joined, strict=True)]


def reordered(kind: str, array: Array) -> Array:
    """Return a parameter with its gates in ONNX's order."""
    pieces = np.split(array, GATES[kind])
    return np.concatenate([pieces[gate] for gate in TO_ONNX[kind]])


@dataclass(frozen=True)
class Stack:
    """The model to build: PyTorch's arguments, and its inputs and outputs."""

    kind: str = "LSTM"
    layers: int = 1
    ways: int = 1
    bias: bool = True
    batch_first: bool = True
    given: bool = False
    reads: tuple[str, ...] = ("y", "h", "c")
    activation: str = "Relu"

    @property
    def first(self) -> list[str]:
        """The names of the initial states that are inputs."""
        return ["h0", "c0"][: STATES[self.kind] * self.given]

    @property
    def results(self) -> list[str]:
        """The names of the outputs."""
        return [name for name in self.reads if name != "c" or self.kind == "LSTM"]


def torchscript(path: Path, stack: Stack, scope: str = "/net/rnn") -> dict[str, Array]:
    """Write a model to ``path``; return its parameters by PyTorch's name.

    It is a module in the scope ``/net/rnn``, and a linear layer after it.
    """
    b = Build()
    expected: dict[str, Array] = {}
    x, lasts, turned = "x", [], f"{scope}/Transpose_1"
    if stack.batch_first:
        b.op("Transpose", [x], ["steps"], f"{scope}/Transpose", perm=[1, 0, 2])
        x = "steps"
    for layer in range(stack.layers):
        each = layer_parameters(b, stack, layer)
        expected |= named(each, layer)
        x, states = one_layer(b, x, layer, packed(stack.kind, each), stack, scope)
        lasts.append(states)
    if stack.batch_first:
        b.op("Transpose", [x], [turned], turned, perm=[1, 0, 2])
        x = turned
    for name, parts in zip(("h", "c"), zip(*lasts, strict=True), strict=False):
        b.op("Concat", list(parts), [name], f"{scope}/Concat_{name}", axis=0)
    matrix = b.normal(stack.ways * HIDDEN, 2)
    expected["out.weight"] = matrix.T
    b.op("MatMul", [x, b.weight("onnx::MatMul_9", matrix)], ["y"], "/net/out/MatMul")
    b.save(path, inputs(stack), stack.results)
    return expected


def inputs(stack: Stack) -> dict[str, Any]:
    """Return the shapes of the inputs."""
    batch = "a" if stack.batch_first else "b"
    size = [stack.layers * stack.ways, batch, HIDDEN]
    return {"x": ["a", "b", INPUT], **dict.fromkeys(stack.first, size)}


def layer_parameters(b: Build, stack: Stack, layer: int) -> list[list[Array]]:
    """Return PyTorch's parameters of one layer, by direction."""
    width = INPUT if layer == 0 else HIDDEN * stack.ways
    return [parameters(b, stack.kind, width, stack.bias) for _ in range(stack.ways)]


def named(each: list[list[Array]], layer: int) -> dict[str, Array]:
    """Return the parameters of one layer by their names."""
    return {
        f"rnn.{name}_l{layer}{way}": array
        for way, arrays in zip(("", "_reverse"), each, strict=False)
        for name, array in zip(NAMES, arrays, strict=False)
    }


def one_layer(
    b: Build, x: str, layer: int, arrays: list[Array], stack: Stack, scope: str
) -> tuple[str, list[str]]:
    """Return all outputs, directions joined, and the last states."""
    weights = [
        b.weight(f"onnx::{stack.kind}_{layer}{i}", array)
        for i, array in enumerate(arrays)
    ]
    omitted = [""] * (3 - len(weights))
    first = [first_state(b, state, layer, stack, scope) for state in stack.first]
    outputs = [f"{name}{layer}" for name in "YHC"[: 1 + STATES[stack.kind]]]
    operands = [x, *weights, *omitted, "", *first]
    name = f"{scope}/{stack.kind}_{layer}"
    b.op(stack.kind, operands, outputs, name, **options(stack))
    return joined(b, outputs[0], stack, f"{scope}/{layer}"), outputs[1:]


def options(stack: Stack) -> dict[str, Any]:
    """Return the attributes of the operator."""
    results: dict[str, Any] = {"hidden_size": HIDDEN}
    if stack.ways == 2:
        results["direction"] = "bidirectional"
    if stack.kind == "GRU":
        results["linear_before_reset"] = 1
    if stack.kind == "RNN":
        results["activations"] = [stack.activation] * stack.ways
    return results


def first_state(b: Build, name: str, layer: int, stack: Stack, scope: str) -> str:
    """Return the slice of a state for one layer."""
    result = f"{name}_{layer}"
    ends = [layer * stack.ways, (layer + 1) * stack.ways, 0]
    bounds = [
        b.weight(f"{result}.{i}", np.array([end], np.int64))
        for i, end in enumerate(ends)
    ]
    b.op("Slice", [name, *bounds], [result], f"{scope}/Slice_{result}")
    return result


def joined(b: Build, y: str, stack: Stack, name: str) -> str:
    """Return all outputs ``[time, batch, directions * hidden]``."""
    if stack.ways == 1:
        one = b.weight(f"{y}.one", np.array([1], np.int64))
        b.op("Squeeze", [y, one], [f"{y}.joined"], f"{name}/Squeeze")
        return f"{y}.joined"
    shape = b.weight(f"{y}.shape", np.array([0, 0, -1], np.int64))
    b.op("Transpose", [y], [f"{y}.t"], f"{name}/Transpose", perm=[0, 2, 1, 3])
    b.op("Reshape", [f"{y}.t", shape], [f"{y}.joined"], f"{name}/Reshape")
    return f"{y}.joined"


def feeds(stack: Stack, first: int, second: int) -> dict[str, Array]:
    """Return random inputs of a model of :func:`torchscript`."""
    rng = np.random.default_rng(first * 100 + second)
    results = {"x": rng.standard_normal((first, second, INPUT)).astype(np.float32)}
    batch = first if stack.batch_first else second
    for name in stack.first:
        shape = (stack.layers * stack.ways, batch, HIDDEN)
        results[name] = rng.standard_normal(shape).astype(np.float32)
    return results
