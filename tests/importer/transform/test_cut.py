"""Extraction of the subgraph between named values."""

from pathlib import Path
from typing import Any

import numpy as np
from onnx import helper

import burn
from burn_import import Options, load
from burn_import.pipeline import import_model
from tests.importer.onnx_files import graph, model, saved
from tests.importer.transform.blocks import (
    MIDDLE,
    WEIGHTS,
    X,
    blocks,
    close,
    computed,
    head,
    weight,
    wrong,
)


def test_a_part_of_a_model(net: Path) -> None:
    middle = computed(net, X, outputs=(MIDDLE,))
    close(
        middle,
        np.tanh(X @ WEIGHTS["enc.0.lin.weight"].T + WEIGHTS["enc.0.lin.bias"]) + X,
    )
    close(computed(net, middle, inputs=(MIDDLE,)), head(blocks(X)))
    close(
        computed(net, middle, inputs=(MIDDLE,), outputs=("parts",)),
        blocks(X).reshape(2, 4, 2, 3),
    )
    keys = [key for key, _ in import_model(net, Options(outputs=(MIDDLE,))).weights]
    assert keys and all("1" not in key for key in keys)


def test_extents_are_read_from_the_new_inputs(net: Path) -> None:
    """``y`` needs the extents of ``x``, which is no input any more."""
    for passes in (None, ()):
        cut = Options(inputs=(MIDDLE,), passes=passes)
        part: Any = load(net, cut)
        for shape in ((2, 4, 6), (3, 1, 6)):
            x = weight(*shape)
            close(part(burn.tensor(x)).numpy(), head(blocks(x, 1)))
        text = import_model(net, cut).text
        assert "float32[batch, seq, 6]" in text


def test_the_shape_of_a_cut(net: Path) -> None:
    options = Options(inputs=(MIDDLE,), shapes={MIDDLE: (2, "n", 6)})
    assert "y  float32[2, n, 3]" in import_model(net, options).text
    assert wrong(net, inputs=(MIDDLE,), shapes={"x": (1, 2, 6)})


def test_a_weight_as_input(net: Path) -> None:
    """A stored array becomes an argument; the other weights stay."""
    part: Any = load(net, Options(inputs=("x", "enc.1.lin.bias")))
    bias = WEIGHTS["enc.1.lin.bias"]
    close(part(burn.tensor(X), burn.tensor(bias)).numpy(), head(blocks(X)))


def test_values_that_are_not_there(net: Path) -> None:
    assert wrong(net, inputs=("/enc/O/y", "nowhere"), outputs=("y", "y")) == [
        "expected the name of an input among the values of the model, got '/enc/O/y'; "
        "did you mean '/enc/1/y', '/enc/0/y'?",
        "expected the name of an input among the values of the model, got 'nowhere'; "
        "`burn-import inspect MODEL --graph net.svg` draws the names",
        "expected different names, got an output 'y' twice",
    ]
    assert "lin.bias'?" in wrong(net, inputs=("lin.bias",))[0]


def test_cuts_that_do_not_separate(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Relu", ["a"], ["h"]),
        helper.make_node("Tanh", ["a"], ["unused"]),
        helper.make_node("Add", ["h", "b"], ["y"]),
    ]
    proto = model(graph(nodes, {"a": [3], "b": [3]}))
    path = saved(tmp_path / "net.onnx", proto)
    assert wrong(path, inputs=("h", "unused")) == [
        "expected outputs that need only the named inputs, they also need 'b'",
        "expected inputs that the outputs depend on, got 'unused'",
    ]
    assert (
        "def __call__(self, b: Tensor, h: Tensor)"
        in import_model(path, Options(inputs=("b", "h"))).text
    )


def test_what_is_cut_off_need_not_be_supported(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["h"]),
        helper.make_node("Postprocess", ["h"], ["y"], domain="some.body"),
    ]
    path = saved(tmp_path / "net.onnx", model(graph(nodes)))
    assert "ops.relu" in import_model(path, Options(outputs=("h",))).text
