"""The extents of inputs, fixed and named."""

from pathlib import Path
from typing import Any

import pytest
from onnx import helper

from burn_import import Options
from burn_import.options import parse_shape
from burn_import.pipeline import import_model
from tests.cli.commands import run
from tests.importer.onnx_files import graph, model, saved, stored
from tests.importer.transform.blocks import X, wrong


def test_shapes_reach_everything(net: Path) -> None:
    text = import_model(net, Options(shapes={"x": (2, "length", 6)})).text
    assert 'x="float32[2, length, 6]"' in text and "y  float32[2, length, 3]" in text
    assert "batch" not in text and "seq" not in text


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"x": (2, 4)}, "input 'x': expected 3 extents [batch, seq, 6], as the file"),
        ({"x": (2, 4, 7)}, "input 'x', axis 2: expected 6, as the file has, got 7"),
        ({"x": (2, 4, "n")}, "node '/enc/enc.0/m' (MatMul, opset 17): expected a node"),
        ({"x": (2, -1, 6)}, "input 'x': expected numbers and names as extents, got -1"),
        ({"x": (2, "a b", 6)}, "input 'x': expected numbers and names as extents"),
        ({"X": (2, 4, 6)}, "expected the name of an input to give a shape, got 'X'"),
    ],
)
def test_shapes_that_contradict(net: Path, shapes: Any, message: str) -> None:
    (actual,) = wrong(net, shapes=shapes)
    assert actual.startswith(message)


def two_inputs(tmp_path: Path, **shapes: Any) -> Path:
    nodes = [helper.make_node("Add", ["a", "b"], ["y"])]
    return saved(tmp_path / "two.onnx", model(graph(nodes, shapes)))


def test_one_name_is_one_extent(tmp_path: Path) -> None:
    path = two_inputs(tmp_path, a=["batch", 3], b=["batch", "3 + k"])
    text = import_model(path, Options(shapes={"a": (5, 3)})).text
    assert 'b="float32[5, k + 3]"' in text
    assert wrong(path, shapes={"a": (5, 3), "b": (4, 3)}) == [
        "input 'b', axis 0: expected 5, as 'batch' is in input 'a', got 4"
    ]
    path = two_inputs(tmp_path, a=["k", 1], b=["k", "k + 2"])
    assert 'b="float32[1, 3]"' in import_model(path, Options(shapes={"a": (1, 1)})).text
    assert wrong(path, shapes={"a": (1, 1), "b": (1, 4)}) == [
        "input 'b', axis 1: expected 3, as follows from the others, got 4"
    ]


def test_shapes_that_the_nodes_contradict(tmp_path: Path) -> None:
    path = two_inputs(tmp_path, a=["n", 3], b=["m", 3])
    answer = run(path, "-o", tmp_path / "o.py", "--shape", "a=2,3", "--shape", "b=4,3")
    assert answer.exit_code == 5 and "broadcast" in answer.stderr
    assert "help: the shapes that were asked for may not fit" in answer.stderr


def test_a_shape_where_the_file_has_none(tmp_path: Path) -> None:
    proto = model(graph([helper.make_node("Relu", ["x"], ["y"])], {"x": None}))
    path = saved(tmp_path / "open.onnx", proto)
    text = import_model(path, Options(shapes={"x": ("n", 3)})).text
    assert "y  float32[n, 3]" in text


def test_the_shape_of_a_default(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    proto = model(graph(nodes, {"x": [3], "w": ["k"]}, ("y",), (stored("w", X[0, 0]),)))
    path = saved(tmp_path / "default.onnx", proto)
    (message,) = wrong(path, shapes={"w": (3,)})
    assert message == "input 'w': expected [6], as its default has, got [3]"


@pytest.mark.parametrize("text", ["x", "=2", "x=2,-1", "x=2,a b", "x=1.5", "x=2,,3"])
def test_shapes_that_are_no_shapes(net: Path, text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_shape(text)
    assert run(net, "--shape", text).exit_code == 2
    assert parse_shape("a=b=2, n ,3") == ("a=b", (2, "n", 3))
    assert parse_shape("x=") == ("x", ())
