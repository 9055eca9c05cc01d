"""Networks: the golden models that look like what people export."""

import re

import numpy as np
from onnx import helper

from tests.golden.build.case import INT64, Build, Case, model


def _scope(name: str) -> str:
    """Return the scope that torch gives to the nodes of the module ``name``."""
    return "/" + re.sub(r"\.(?!\d)", "/", name)


def _conv_norm(
    b: Build, x: str, name: str, size: tuple[int, int], stride: int, out: str
) -> str:
    weight = b.weight(f"{name}.conv.weight", size[1], size[0], 3, 3, scale=0.3)
    x = b.op(
        "Conv",
        [x, weight],
        f"{out}_conv",
        kernel_shape=[3, 3],
        pads=[1, 1, 1, 1],
        strides=[stride, stride],
        name=f"{_scope(name)}/conv/Conv",
    )
    norm = [
        b.positive(f"{name}.norm.weight", size[1]),
        b.weight(f"{name}.norm.bias", size[1]),
        b.weight(f"{name}.norm.running_mean", size[1]),
        b.positive(f"{name}.norm.running_var", size[1]),
    ]
    return b.op("BatchNormalization", [x, *norm], out, epsilon=1e-5)


def residual() -> Case:
    """A residual network with batch normalisation and a symbolic batch."""
    b = Build(1)
    x = b.op("Relu", [_conv_norm(b, "image", "stem", (3, 8), 2, "stem")], "stem_relu")
    for i in range(2):
        first = _conv_norm(b, x, f"layers.{i}.first", (8, 8), 1, f"first{i}")
        first = b.op("Relu", [first], f"relu{i}")
        second = _conv_norm(b, first, f"layers.{i}.second", (8, 8), 1, f"second{i}")
        scope = f"/layers.{i}"
        total = b.op("Add", [second, x], f"add{i}", name=f"{scope}/Add")
        x = b.op("Relu", [total], f"block{i}", name=f"{scope}/Relu")
    x = b.op("GlobalAveragePool", [x], "pooled", name="/pool/GlobalAveragePool")
    x = b.op("Flatten", [x], "flat", axis=1, name="/Flatten")
    head = [b.weight("head.weight", 5, 8), b.weight("head.bias", 5)]
    b.op("Gemm", [x, *head], "logits", transB=1)
    graph = b.graph(
        "residual", {"image": ["batch", 3, 9, 10]}, {"logits": ["batch", 5]}
    )
    feeds = tuple({"image": b.normal(n, 3, 9, 10)} for n in (1, 3))
    return Case(model(graph), feeds)


def _linear(b: Build, x: str, name: str, size: tuple[int, int]) -> str:
    weight = b.weight(f"{name}.weight", *size)
    scope = _scope(name)
    x = b.op("MatMul", [x, weight], f"{name}/product", name=f"{scope}/MatMul")
    bias = b.weight(f"{name}.bias", size[1])
    return b.op("Add", [x, bias], f"{name}/sum", name=f"{scope}/Add")


def _heads(b: Build, x: str, name: str, perm: list[int]) -> str:
    shape = b.stored(f"{name}/shape", [0, 0, 2, 4])
    x = b.op("Reshape", [x, shape], f"{name}/split")
    return b.op("Transpose", [x], f"{name}/heads", perm=perm)


def _normed(b: Build, x: str, name: str) -> str:
    scale = [b.positive(f"{name}.weight", 8), b.weight(f"{name}.bias", 8)]
    return b.op("LayerNormalization", [x, *scale], f"{name}/out", axis=-1)


def _block(b: Build, x: str, name: str) -> str:
    normed = _normed(b, x, f"{name}.norm1")
    projected = {
        part: _linear(b, normed, f"{name}.attention.{part}", (8, 8))
        for part in ("query", "key", "value")
    }
    query = _heads(b, projected["query"], f"{name}/query", [0, 2, 1, 3])
    key = _heads(b, projected["key"], f"{name}/key", [0, 2, 3, 1])
    value = _heads(b, projected["value"], f"{name}/value", [0, 2, 1, 3])
    scores = b.op("MatMul", [query, key], f"{name}/scores")
    scores = b.op("Mul", [scores, b.stored(f"{name}/scale", 0.5)], f"{name}/scaled")
    scores = b.op("Softmax", [scores], f"{name}/softmax", axis=-1)
    mixed = b.op("MatMul", [scores, value], f"{name}/mixed")
    mixed = b.op("Transpose", [mixed], f"{name}/together", perm=[0, 2, 1, 3])
    mixed = b.op("Reshape", [mixed, b.stored(f"{name}/flat", [0, 0, 8])], f"{name}/z")
    mixed = _linear(b, mixed, f"{name}.attention.output", (8, 8))
    x = b.op("Add", [x, mixed], f"{name}/residual1", name=f"{_scope(name)}/Add")
    hidden = _linear(b, _normed(b, x, f"{name}.norm2"), f"{name}.mlp.up", (8, 12))
    hidden = b.op("Tanh", [hidden], f"{name}/tanh")
    hidden = _linear(b, hidden, f"{name}.mlp.down", (12, 8))
    return b.op("Add", [x, hidden], f"{name}/residual2", name=f"{_scope(name)}/Add_1")


def transformer() -> Case:
    """Two transformer blocks, structurally equal, with dotted names."""
    b = Build(2)
    x = _block(b, _block(b, "x", "encoder.layers.0"), "encoder.layers.1")
    b.op("Identity", [_normed(b, x, "encoder.norm")], "encoded")
    graph = b.graph(
        "transformer",
        {"x": ["batch", "length", 8]},
        {"encoded": ["batch", "length", 8]},
    )
    feeds = tuple({"x": b.normal(*size, 8)} for size in ((2, 5), (3, 4)))
    return Case(model(graph), feeds)


def embedding() -> Case:
    """Token and position embeddings, normalised, one token picked per row."""
    b = Build(3)
    x = b.op("Gather", [b.weight("tokens.weight", 11, 6), "ids"], "token")
    length = b.op("Shape", ["ids"], "length", start=1, end=2)
    zero, one = b.stored("zero", [0]), b.stored("one", [1])
    table = b.weight("positions.weight", 9, 6)
    places = b.op("Slice", [table, zero, length, zero, one], "position")
    x = b.op("Add", [x, places], "embedded")
    norm = [b.positive("norm.weight", 6), b.weight("norm.bias", 6)]
    x = b.op("LayerNormalization", [x, *norm], "normed", axis=-1, epsilon=1e-12)
    x = b.op("Gather", [x, b.stored("last", -1)], "picked", axis=1)
    b.op("MatMul", [x, b.weight("head.weight", 6, 4)], "scores")
    graph = b.graph(
        "embedding",
        {"ids": ["batch", "length"]},
        {"scores": ["batch", 4]},
        {"ids": INT64},
    )
    feeds = tuple({"ids": b.rng.integers(0, 11, size)} for size in ((2, 5), (3, 9)))
    return Case(model(graph), feeds)


def lstm() -> Case:
    """A bidirectional LSTM with initial states and all three results."""
    b = Build(4)
    weights = [
        b.weight("rnn.weight_ih", 2, 20, 3),
        b.weight("rnn.weight_hh", 2, 20, 5),
        b.weight("rnn.bias", 2, 40),
    ]
    b.op("Transpose", ["x"], "steps", perm=[1, 0, 2])
    b.nodes.append(
        helper.make_node(
            "LSTM",
            ["steps", *weights, "", "h0", "c0"],
            ["y", "hn", "cn"],
            "/rnn/LSTM",
            hidden_size=5,
            direction="bidirectional",
        )
    )
    b.op("Transpose", ["y"], "by_batch", perm=[2, 0, 1, 3])
    b.op("Reshape", ["by_batch", b.stored("joint", [0, 0, -1])], "sequence")
    graph = b.graph(
        "lstm",
        {"x": ["batch", "time", 3], "h0": [2, "batch", 5], "c0": [2, "batch", 5]},
        {
            "sequence": ["batch", "time", None],
            "hn": [2, "batch", 5],
            "cn": [2, "batch", 5],
        },
    )
    feeds = tuple(
        {
            "x": b.normal(n, t, 3),
            "h0": b.normal(2, n, 5),
            "c0": b.normal(2, n, 5),
        }
        for n, t in ((2, 4), (3, 6))
    )
    return Case(model(graph), feeds)


def shared() -> Case:
    """One linear layer that is called twice, and a bias that two layers share."""
    b = Build(5)
    weight, bias = b.weight("cell.weight", 6, 6), b.weight("cell.bias", 6)
    x = b.op("Tanh", [b.op("Gemm", ["x", weight, bias], "first", transB=1)], "tanh1")
    x = b.op("Tanh", [b.op("Gemm", [x, weight, bias], "second", transB=1)], "tanh2")
    x = b.op("Gemm", [x, b.weight("head.weight", 6, 6), bias], "y", transB=1)
    graph = b.graph("shared", {"x": ["batch", 6]}, {"y": ["batch", 6]})
    feeds = tuple({"x": np.asarray(b.normal(n, 6))} for n in (2, 5))
    return Case(model(graph), feeds)
