"""Numbers and lists in source keep the dtype, rank and position of the value."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from burn_import import load
from burn_import.options import Options
from burn_import.pipeline import import_model
from burn_ir import InvalidModel
from tests.importer.onnx_files import graph, model, saved, stored
from tests.modules import Array, call, generate, onnxruntime_outputs

RNG = np.random.default_rng(11)
KINDS = {"float32": 1, "int64": 7, "bool": 9, "float16": 10, "float64": 11, "int32": 6}


def net(
    nodes: list[onnx.NodeProto], arrays: dict[str, Array], **weights: Any
) -> onnx.ModelProto:
    """Return a model with inputs of the dtypes and ranks of ``arrays``."""
    inputs = [
        helper.make_tensor_value_info(
            name, KINDS[array.dtype.name], [f"{name}{i}" for i in range(array.ndim)]
        )
        for name, array in arrays.items()
    ]
    proto = graph(nodes, {}, ("y",), tuple(stored(n, w) for n, w in weights.items()))
    proto.input.extend(inputs)
    return model(proto)


def agrees(path: Path, proto: onnx.ModelProto, arrays: dict[str, Array]) -> None:
    """Check that the loaded model gives the results of onnxruntime."""
    path = saved(path / "net.onnx", proto)
    (expected,) = onnxruntime_outputs(path, arrays)
    (actual,) = call(load(path), list(arrays.values()))
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64"])
def test_two_numbers_between_which_a_condition_chooses(
    tmp_path: Path, dtype: str
) -> None:
    sides = {"a": np.array(3, dtype), "b": np.array(-7, dtype)}
    node = helper.make_node("Where", ["c", "a", "b"], ["y"])
    arrays = {"c": RNG.integers(0, 2, (2, 3, 4)).astype(bool)}
    agrees(tmp_path, net([node], arrays, **sides), arrays)


@pytest.mark.parametrize("dtype", ["float16", "int32"])
def test_one_number_that_a_condition_chooses(tmp_path: Path, dtype: str) -> None:
    arrays = {
        "c": RNG.integers(0, 2, (2, 3, 4)).astype(bool),
        "x": RNG.integers(-9, 9, (2, 3, 4)).astype(dtype),
    }
    node = helper.make_node("Where", ["c", "a", "x"], ["y"])
    agrees(tmp_path, net([node], arrays, a=np.array(3, dtype)), arrays)


def test_extents_are_chosen_at_run_time(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "i"], ["y"], axis=0),
    ]
    arrays = {
        "x": RNG.normal(size=(2, 3, 5)).astype(np.float32),
        "i": np.array([[2, -3], [1, 1]]),
    }
    agrees(tmp_path, net(nodes, arrays), arrays)


def test_stored_numbers_are_chosen_at_run_time(tmp_path: Path) -> None:
    node = helper.make_node("Gather", ["table", "i"], ["y"], axis=0)
    arrays = {"i": np.array([[2, -3], [1, 1]])}
    agrees(tmp_path, net([node], arrays, table=np.array([7, 5, 3])), arrays)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_stored_numbers_beside_computed_ones(tmp_path: Path, dtype: str) -> None:
    node = helper.make_node("Concat", ["x", "ends"], ["y"], axis=0)
    arrays = {"x": np.array([7, -5], dtype)}
    agrees(tmp_path, net([node], arrays, ends=np.array([2, 3], dtype)), arrays)


def branch(name: str, kind: str) -> onnx.GraphProto:
    """Return a branch that lists its captured values as inputs."""
    node = helper.make_node(kind, ["h"], [name])
    outputs = [helper.make_empty_tensor_value_info(name)]
    outputs[0].type.tensor_type.elem_type = TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info("h", TensorProto.FLOAT, [None] * 3)]
    return helper.make_graph([node], name, inputs, outputs)


@pytest.mark.parametrize("condition", [False, True])
def test_inputs_of_a_branch_are_what_it_takes_from_outside(
    tmp_path: Path, condition: bool
) -> None:
    nodes = [
        helper.make_node("Neg", ["x"], ["h"]),
        helper.make_node(
            "If",
            ["c"],
            ["y"],
            then_branch=branch("a", "Exp"),
            else_branch=branch("b", "Sin"),
        ),
    ]
    arrays = {
        "c": np.array(condition),
        "x": RNG.normal(size=(2, 3, 5)).astype(np.float32),
    }
    path = saved(tmp_path / "net.onnx", net(nodes, arrays))
    (expected,) = ReferenceEvaluator(str(path)).run(None, arrays)
    (actual,) = call(load(path), list(arrays.values()))
    np.testing.assert_allclose(actual, np.asarray(expected), rtol=1e-6)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            [("Add", "x b", "a"), ("Add", "a x", "b"), ("Neg", "b", "y")],
            r"node 'a' \(Add, opset 17\): expected a graph without cycles",
        ),
        (
            [("Neg", "x", "a"), ("Exp", "x", "a"), ("Neg", "a", "y")],
            r"node 'a' \(Exp, opset 17\): expected one producer of 'a', found two",
        ),
    ],
)
def test_a_node_without_a_name_is_called_by_its_output(
    tmp_path: Path, nodes: list[tuple[str, str, str]], message: str
) -> None:
    results = [
        helper.make_node(kind, inputs.split(), [output])
        for kind, inputs, output in nodes
    ]
    path = saved(tmp_path / "net.onnx", model(graph(results)))
    with pytest.raises(InvalidModel, match=message):
        load(path)


def test_the_number_of_largest_elements_is_a_vector(tmp_path: Path) -> None:
    node = helper.make_node("TopK", ["x", "k"], ["y", "i"], name="top")
    weights = (stored("k", np.array(2)),)
    proto = model(graph([node], {"x": [2, 4, 5]}, initializers=weights), 18)
    path = saved(tmp_path / "net.onnx", proto)
    with pytest.raises(InvalidModel, match=r"'top' .* vector of one, got int64\[\]"):
        load(path)


def test_a_condition_of_compress_is_a_vector(tmp_path: Path) -> None:
    node = helper.make_node("Compress", ["x", "c"], ["y"], name="chosen")
    weights = (stored("c", np.ones((2, 2), bool)),)
    proto = model(graph([node], {"x": [2, 2]}, initializers=weights), 18)
    path = saved(tmp_path / "net.onnx", proto)
    message = r"'chosen' .* condition of rank 1, got bool\[2, 2\]"
    with pytest.raises(InvalidModel, match=message):
        load(path)


@pytest.mark.parametrize("place", [1, 2])
def test_old_group_normalization_has_an_entry_for_each_group(
    tmp_path: Path, place: int
) -> None:
    vectors = [np.ones(2, np.float32), np.ones(2, np.float32)]
    vectors[place - 1] = np.ones(4, np.float32)
    node = helper.make_node("GroupNormalization", list("xsb"), ["y"], num_groups=2)
    weights = tuple(stored(n, v) for n, v in zip("sb", vectors, strict=True))
    proto = model(graph([node], {"x": [2, 4, 5]}, initializers=weights), 18)
    path = saved(tmp_path / "net.onnx", proto)
    with pytest.raises(InvalidModel, match=r"expected a vector of 2 .* float32\[4\]"):
        load(path)


def test_what_follows_a_function_is_no_part_of_it(tmp_path: Path) -> None:
    inner = [
        helper.make_node(kind, inputs.split(), [output])
        for kind, inputs, output in (
            ("Sin", "a", "b"),
            ("Cos", "a", "c"),
            ("Mul", "b c", "d"),
            ("Exp", "d", "e"),
            ("Add", "e a", "f"),
        )
    ]
    opsets = [helper.make_opsetid("", 18)]
    wave = helper.make_function("mine", "Wave", ["a"], ["f"], inner, opsets)
    calls = [
        helper.make_node("Wave", ["x"], ["h"], name="first", domain="mine"),
        helper.make_node("Wave", ["h"], ["g"], name="second", domain="mine"),
        helper.make_node("Relu", ["g"], ["y"]),
    ]
    proto = model(graph(calls), 18)
    proto.functions.append(wave)
    proto.opset_import.append(helper.make_opsetid("mine", 1))
    module, _ = generate(saved(tmp_path / "net.onnx", proto), tmp_path)
    source = module.read_text()
    assert source.count("def wave(x: Tensor) -> Tensor:") == 1
    assert "return ops.relu(wave(wave(x)))" in source


def test_both_ends_of_a_range_are_positional(tmp_path: Path) -> None:
    places = np.arange(1, 201)
    proto = net([helper.make_node("Add", ["x", "p"], ["y"])], {"x": places}, p=places)
    path = saved(tmp_path / "net.onnx", proto)
    module, _ = generate(path, tmp_path)
    assert "x + ops.arange(1, 201)" in module.read_text()


@pytest.mark.parametrize("end", ["min", "max"])
@pytest.mark.parametrize(
    ("dtype", "limit"),
    [
        ("float16", "float16"),
        ("float32", "float16"),
        ("float32", "float32"),
        ("float64", "float32"),
        ("float64", "float64"),
    ],
)
def test_limits_of_dtypes_are_named(
    tmp_path: Path, dtype: str, limit: str, end: str
) -> None:
    low = np.array(getattr(np.finfo(limit), end), dtype)
    proto = net(
        [helper.make_node("Where", ["c", "x", "low"], ["y"])],
        {"c": np.zeros(3, np.bool_), "x": np.zeros(3, dtype)},
        low=low,
    )
    text = import_model(saved(tmp_path / "net.onnx", proto)).text
    assert f"burn.finfo(burn.{limit}).{end}" in text
    given = {
        "c": np.array([True, False, True]),
        "x": np.array([1, 2, 3], dtype),
    }
    agrees(tmp_path, proto, given)


def test_an_integer_is_no_limit(tmp_path: Path) -> None:
    node = helper.make_node("Where", ["c", "x", "low"], ["y"])
    arrays = {"c": np.zeros(3, np.bool_), "x": np.zeros(3, np.int64)}
    proto = net([node], arrays, low=np.array(-65504))
    assert "-65504)" in import_model(saved(tmp_path / "net.onnx", proto)).text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (math.log(16), "math.log(16)"),
        (math.sqrt(24), "math.sqrt(24)"),
        (8**-0.5, "8**-0.5"),
        (8**-0.25, "8**-0.25"),
        (math.log(39 / 4), "math.log(39 / 4)"),
        (math.tau, "math.tau"),
        (4.0, "4.0"),
        (4.89898, "4.89898"),
    ],
)
def test_functions_of_integers(tmp_path: Path, number: float, text: str) -> None:
    node = helper.make_node("Mul", ["x", "n"], ["y"])
    arrays = {"x": RNG.normal(size=5).astype(np.float32)}
    proto = net([node], arrays, n=np.array(number, np.float32))
    agrees(tmp_path, proto, arrays)
    for target in ("burn", "torch"):
        options = Options(target=target)
        assert f"x * {text}\n" in import_model(tmp_path / "net.onnx", options).text


def test_a_root_is_the_base_of_a_power(tmp_path: Path) -> None:
    node = helper.make_node("Pow", ["n", "x"], ["y"])
    arrays = {"x": RNG.normal(size=5).astype(np.float32)}
    proto = net([node], arrays, n=np.array(8**-0.5, np.float32))
    agrees(tmp_path, proto, arrays)


@pytest.mark.parametrize(
    ("indices", "source"),
    [
        ([0], "x[:, :1]"),
        ([1], "x[:, 1:2]"),
        ([2, 3], "x[:, 2:]"),
        ([-3, -2], "x[:, 1:3]"),
        ([0, 2], "ops.take(x, [0, 2], axis=1)"),
        ([1, 0], "ops.take(x, [1, 0], axis=1)"),
        ([-1, 0], "ops.take(x, [-1, 0], axis=1)"),
    ],
)
def test_consecutive_indices_are_a_slice(
    tmp_path: Path, indices: list[int], source: str
) -> None:
    proto = net(
        [
            helper.make_node("Relu", ["v"], ["x"]),
            helper.make_node("Gather", ["x", "i"], ["y"], axis=1),
        ],
        {"v": np.zeros((2, 4), np.float32)},
        i=np.array(indices),
    )
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 4
    arrays = {"v": RNG.normal(size=(2, 4)).astype(np.float32)}
    agrees(tmp_path, proto, arrays)
    text = import_model(tmp_path / "net.onnx").text
    assert source.replace("(x", "(ops.relu(v)").replace("x[", "ops.relu(v)[") in text


def test_indices_into_an_axis_without_a_number_are_checked(tmp_path: Path) -> None:
    node = helper.make_node("Gather", ["x", "i"], ["y"], axis=1)
    arrays = {"x": RNG.normal(size=(2, 4)).astype(np.float32)}
    proto = net([node], arrays, i=np.array([0]))
    agrees(tmp_path, proto, arrays)
    assert "ops.take(x, [0], axis=1)" in import_model(tmp_path / "net.onnx").text


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_negated_equality_is_inequality(tmp_path: Path, dtype: str) -> None:
    nodes = [
        helper.make_node("Equal", ["x", "z"], ["e"]),
        helper.make_node("Not", ["e"], ["y"]),
    ]
    one, other = np.array([1, 2, 3], dtype), np.array([1, 3, 3], dtype)
    if dtype == "float32":
        one[2] = other[2] = np.nan
    proto = net(nodes, {"x": one, "z": other})
    agrees(tmp_path, proto, {"x": one, "z": other})
    assert "return x != z" in import_model(tmp_path / "net.onnx").text
