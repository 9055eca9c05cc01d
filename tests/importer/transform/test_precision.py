"""Modules that compute in another dtype than the file's."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import burn
from burn_import import Options, load
from burn_import.pipeline import import_model
from tests.cli.commands import run
from tests.importer.onnx_files import graph, model, saved, stored
from tests.importer.transform.blocks import RNG, X, blocks, close, head

TOLERANCE = {"float16": 2e-2, "bfloat16": 1e-1, "float64": 1e-5}


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_a_module_computes_in_a_dtype(net: Path, dtype: str) -> None:
    compiled = import_model(net, Options(dtype=dtype))
    assert {str(array.dtype) for _, array in compiled.weights} == {dtype}
    assert f"y  {dtype}[batch, seq, 3]" in compiled.text
    loaded: Any = load(net, Options(dtype=dtype))
    y = loaded(burn.tensor(X).cast(getattr(burn, dtype)))
    assert y.dtype == getattr(burn, dtype)
    close(y.cast(burn.float32).numpy(), head(blocks(X)), TOLERANCE[dtype])


def halves(tmp_path: Path, nodes: list[Any], *weights: Any, kind: int = 1) -> Any:
    """Return the outputs of a model of ``x`` [2, 3] in float16, and its source."""
    proto = model(graph(nodes, {"x": [2, 3]}, ("y",), weights))
    proto.graph.input[0].type.tensor_type.elem_type = kind
    path = saved(tmp_path / "net.onnx", proto)
    text = import_model(path, Options(dtype="float16")).text
    return load(path, Options(dtype="float16")), text


def test_integers_are_quantized_to_the_dtype_of_the_zero_point(tmp_path: Path) -> None:
    """QuantizeLinear without an output_dtype has none in float64 either."""
    arrays = (stored("scale", np.float32(0.5)), stored("zero", np.int8(3)))
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
    ]
    path = saved(
        tmp_path / "net.onnx", model(graph(nodes, {"x": [2, 3]}, ("y",), arrays))
    )
    loaded: Any = load(path, Options(dtype="float64"))
    x = np.array([[0.6, -1.2, 3.0], [0.0, 2.4, -0.4]])
    expected = np.rint(x / 0.5) * 0.5
    np.testing.assert_array_equal(loaded(burn.tensor(x)).numpy(), expected)


def test_what_has_to_be_exact_stays_so(tmp_path: Path) -> None:
    """With a step of 0.1 in float16 there are eleven numbers below 1, not ten."""
    bounds = [stored(n, np.float32(v)) for n, v in (("a", 0), ("b", 1), ("c", 0.1))]
    nodes = [
        helper.make_node("Range", ["a", "b", "c"], ["r"]),
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Add", ["r", "s"], ["y"]),
    ]
    net, _ = halves(tmp_path, nodes, *bounds)
    y = net(burn.tensor(np.zeros((2, 3), np.float16)))
    assert y.dtype == burn.float16 and y.shape == (10,)


def test_angles_of_positions_are_exact(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["p"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["p", "f"], ["angle"]),
        helper.make_node("Sin", ["angle"], ["y"]),
    ]
    frequency = stored("f", np.array([0.37], np.float32))
    net, text = halves(tmp_path, nodes, frequency, kind=TensorProto.INT64)
    places = np.array([[4095, 4096, 4097], [2049, 3001, 1]])
    y = net(burn.tensor(places))
    assert y.dtype == burn.float16
    close(y.numpy(), np.sin(places * np.float32(0.37)), 1e-3)


def test_finite_numbers_stay_finite(tmp_path: Path) -> None:
    low = stored("low", np.array([np.finfo(np.float32).min, -np.inf, 1], np.float32))
    nodes = [helper.make_node("Min", ["x", "low"], ["y"])]
    net, _ = halves(tmp_path, nodes, low)
    y = net(burn.tensor(np.ones((2, 3), np.float16))).numpy()
    np.testing.assert_array_equal(y[0], np.array([-65504, -np.inf, 1], np.float16))


def test_bodies_and_casts_follow(tmp_path: Path) -> None:
    def body(name: str, kind: str) -> onnx.GraphProto:
        nodes = [
            helper.make_node(kind, ["x"], [name + "h"]),
            helper.make_node("Cast", [name + "h"], [name + "d"], to=TensorProto.DOUBLE),
            helper.make_node("Mul", [name + "d", "factor"], [name]),
        ]
        output = helper.make_empty_tensor_value_info(name)
        return helper.make_graph(nodes, name, [], [output])

    nodes = [
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Cast", ["most"], ["yes"], to=TensorProto.BOOL),
        helper.make_node(
            "If",
            ["yes"],
            ["y"],
            then_branch=body("t", "Relu"),
            else_branch=body("e", "Neg"),
        ),
    ]
    net, text = halves(tmp_path, nodes, stored("factor", np.array([2.5])))
    x = RNG.normal(size=(2, 3)).astype(np.float16)
    y = net(burn.tensor(x))
    assert y.dtype == burn.float16 and "float64" not in text
    np.testing.assert_array_equal(y.numpy(), np.maximum(x, 0) * np.float16(2.5))


def test_empty_sequences_follow(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("SequenceEmpty", [], ["empty"]),
        helper.make_node("SequenceInsert", ["empty", "x"], ["items"]),
        helper.make_node("ConcatFromSequence", ["items"], ["y"], axis=0),
    ]
    net, _ = halves(tmp_path, nodes)
    x = RNG.normal(size=(2, 3)).astype(np.float16)
    np.testing.assert_array_equal(net(burn.tensor(x)).numpy(), x)


def test_a_node_that_cannot_is_named(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("BitCast", ["i"], ["f"], name="bits", to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "f"], ["h"]),
        helper.make_node("BitCast", ["h"], ["y"], name="back", to=TensorProto.INT32),
    ]
    numbers = stored("i", np.arange(3, dtype=np.int32))
    proto = model(graph(nodes, {"x": [2, 3]}, ("y",), (numbers,)), opset=26)
    path = saved(tmp_path / "net.onnx", proto)
    answer = run(path, "-o", tmp_path / "o.py", "--dtype", "float16")
    assert answer.exit_code == 5 and "node 'back' (BitCast" in answer.stderr


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_a_quantization_keeps_its_integers(tmp_path: Path, dtype: str) -> None:
    """Its dtype is that of its zero point, not of an attribute."""
    operands = (
        stored("scale", np.array(0.5, np.float32)),
        stored("zero", np.array(3, np.int8)),
    )
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
    ]
    proto = model(graph(nodes, {"x": [2, 3]}, ("y",), operands), opset=21)
    net: Any = load(saved(tmp_path / "net.onnx", proto), Options(dtype=dtype))
    x = np.array([[0.5, 1.0, -1.5], [0.0, 2.0, 63.0]], dtype)
    y = net(burn.tensor(x)).numpy()
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, np.minimum(x, 62.0))
