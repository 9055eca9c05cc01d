"""The command ``diff``: structure, types and weights of two models."""

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from burn.record import write_record
from burn_import.comparison.differences import value_difference
from tests.cli.commands import run
from tests.importer.exported_files import linear_program, saved as exported
from tests.importer.onnx_files import graph, model, saved, stored
from tests.test_house import ROOT

DIGITS = ROOT / "models" / "digits" / "digits.onnx"
WAVES = ROOT / "models" / "waves" / "waves.onnx"


def difference(first: str | Path, second: str | Path) -> Any:
    """Return the JSON of a comparison, after a check of the exit code."""
    answer = run("diff", first, second, "--format", "json")
    result = json.loads(answer.stdout)
    assert answer.exit_code == (0 if result["equal"] else 1), answer.output
    return result


def rows(result: Any) -> list[tuple[str, str, str]]:
    """Return part, name and change of each difference."""
    return [(row["part"], row["name"], row["change"]) for row in result["differences"]]


def edited(path: Path, edit: Callable[[onnx.ModelProto], None]) -> Path:
    """Write the digits model after an edit."""
    proto = onnx.load(str(DIGITS))
    edit(proto)
    onnx.save(proto, str(path))
    return path


def node(proto: onnx.ModelProto, operator: str) -> Any:
    """Return the first node of an operator."""
    return next(one for one in proto.graph.node if one.op_type == operator)


@pytest.mark.parametrize("standalone", [(), ("--standalone",)])
def test_a_model_equals_its_module_and_its_record(
    tmp_path: Path, standalone: tuple[str, ...]
) -> None:
    module = tmp_path / "app" / "net.py"
    assert run(DIGITS, "-o", module, *standalone).exit_code == 0
    record = module.with_suffix(".safetensors")
    for second in (DIGITS, module, record):
        answer = run("diff", DIGITS, second)
        assert answer.exit_code == 0, answer.output
        assert answer.stdout == "equal: 12 tensors\n"
        assert difference(second, DIGITS)["values"] == []
    assert difference(module, record)["equal"]
    annotated = run("diff", DIGITS, module, "--format", "github").stdout
    assert annotated.startswith("equal: ") and "::" not in annotated


def test_programs_of_pytorch_are_compared(tmp_path: Path) -> None:
    content, weights = linear_program()
    first = exported(tmp_path, content, weights)
    key = next(iter(weights))
    other = {**weights, key: weights[key] + 1}
    (tmp_path / "other").mkdir()
    result = difference(first, exported(tmp_path / "other", content, other))
    assert [value["key"] for value in result["values"]] == [key]
    assert rows(result) == [] and difference(first, first)["equal"]
    assert {row[0] for row in rows(difference(first, DIGITS))} == {
        *("input", "output", "operator", "node", "layer", "weight")
    }


def test_an_operator_that_changed_is_named(tmp_path: Path) -> None:
    def edit(proto: onnx.ModelProto) -> None:
        node(proto, "Relu").op_type = "Tanh"

    result = difference(DIGITS, edited(tmp_path / "other.onnx", edit))
    assert rows(result) == [
        ("operator", "Relu", "changed"),
        ("operator", "Tanh", "added"),
        ("node", "node_relu", "changed"),
    ]
    last = result["differences"][-1]
    assert (last["before"], last["after"]) == ("operator Relu", "operator Tanh")


def test_an_attribute_and_an_input_of_a_node_are_named(tmp_path: Path) -> None:
    def edit(proto: onnx.ModelProto) -> None:
        relu = node(proto, "Relu")
        relu.input[0] = node(proto, "Conv").output[0]
        norm = node(proto, "BatchNormalization")
        (epsilon,) = [one for one in norm.attribute if one.name == "epsilon"]
        epsilon.f = 0.5

    result = difference(DIGITS, edited(tmp_path / "other.onnx", edit))
    texts = {row["name"]: row["after"] for row in result["differences"]}
    assert texts["node_relu"] == "input 0 node_Conv_36"
    assert texts["node__native_batch_norm_legit_no_training__0"] == "epsilon 0.5"


def test_names_of_values_are_no_difference(tmp_path: Path) -> None:
    def edit(proto: onnx.ModelProto) -> None:
        relu = node(proto, "Relu")
        old = relu.output[0]
        for one in proto.graph.node:
            for names in (one.input, one.output):
                names[:] = ["renamed" if name == old else name for name in names]

    assert difference(DIGITS, edited(tmp_path / "other.onnx", edit))["equal"]


def test_types_sizes_and_opsets_are_compared(tmp_path: Path) -> None:
    weight = stored("w", np.ones((3, 2), np.float32))

    def written(name: str, shape: list[int], rows: Any, opset: int) -> Path:
        nodes = [
            helper.make_node("MatMul", ["x", "w"], ["h"], "product"),
            helper.make_node("Reshape", ["h", "shape"], ["y"], "rows"),
        ]
        size = stored("shape", np.array(shape))
        inputs = {"x": [rows, 3]}
        net = model(graph(nodes, inputs, initializers=(weight, size)), opset)
        return saved(tmp_path / name, net)

    old = written("old.onnx", [-1, 2], "batch", 17)
    new = written("new.onnx", [2, -1], 4, 18)
    result = difference(old, new)
    assert ("opset", "ai.onnx", "changed") in rows(result)
    assert ("output", "y", "changed") in rows(result)
    by_name = {
        row["name"]: (row["before"], row["after"]) for row in result["differences"]
    }
    assert by_name["x"] == ("float32[batch, 3]", "float32[4, 3]")
    assert by_name["rows"] == ("input 1 int64[2] [-1, 2]", "input 1 int64[2] [2, -1]")


@pytest.fixture
def records(tmp_path: Path) -> tuple[Path, Path]:
    """Return two records with one key of different values, and one of another dtype."""
    first, second = tmp_path / "a.safetensors", tmp_path / "b.mpk"
    same = np.arange(4, dtype=np.float32)
    other = same + np.array([0, 0, 0, 1.5], np.float32)
    write_record(first, [("a.w", same), ("a.b", same), ("c.w", same)])
    write_record(
        second, [("a.w", other), ("a.b", same.astype(np.float64)), ("d.w", same)]
    )
    return first, second


def test_layers_and_weights_are_compared_by_key(records: tuple[Path, Path]) -> None:
    result = difference(*records)
    assert rows(result) == [
        ("layer", "c", "removed"),
        ("layer", "d", "added"),
        ("weight", "a.b", "changed"),
        ("weight", "c.w", "removed"),
        ("weight", "d.w", "added"),
    ]
    (value,) = result["values"]
    assert value == {
        "key": "a.w",
        "elements": 4,
        "different": 1,
        "absolute": 1.5,
        "relative": 0.5,
    }


def test_differences_are_printed_as_tables_and_annotations(
    records: tuple[Path, Path],
) -> None:
    answer = run("diff", *records)
    assert answer.exit_code == 1
    assert "weight  a.b   changed  float32[4]  float64[4]" in answer.stdout
    assert answer.stdout.endswith("5 differences; 1 tensors with other values\n")
    lines = run("diff", *records, "--format", "github").stdout.splitlines()
    assert len(lines) == 6
    assert all(line.startswith("::warning title=") for line in lines)
    assert lines[-1].endswith(
        "weight a.w: 1 of 4 elements differ, by at most 1.5e+00 (relative 5.0e-01)"
    )


def test_weights_of_an_onnx_model_are_compared_with_a_tuned_module(
    tmp_path: Path,
) -> None:
    def edit(proto: onnx.ModelProto) -> None:
        for tensor in proto.graph.initializer:
            if list(tensor.dims) == [10, 512]:
                array = numpy_helper.to_array(tensor).copy()
                array[0] += 1
                tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))

    module = tmp_path / "net.py"
    assert run(DIGITS, "-o", module).exit_code == 0
    result = difference(module, edited(tmp_path / "other.onnx", edit))
    (value,) = result["values"]
    assert (value["key"], value["different"]) == ("head.linear.weight", 512)
    assert result["differences"] == []


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([np.nan, 1], [np.nan, 1], None),
        ([np.nan, 1], [0, 1], (1, np.inf)),
        ([np.inf, 1], [np.inf, 3], (1, 2)),
        ([0.0, 0], [-0.0, 0], None),
    ],
)
def test_values_that_are_no_finite_numbers(a: Any, b: Any, expected: Any) -> None:
    value = value_difference("w", np.array(a, np.float32), np.array(b, np.float32))
    actual = None if value is None else (value.different, value.absolute)
    assert actual == expected


def test_values_of_other_dtypes() -> None:
    a = np.array([1, 2, 250], np.uint8)
    value = value_difference("w", a, a + np.uint8(5))
    assert value is not None and (value.different, value.absolute) == (3, 5)
    small = a.astype(ml_dtypes.bfloat16)
    assert value_difference("w", small, a) is None
    assert value_difference("w", np.array([1j]), np.array([1])) is not None
    large = np.array([2**60], np.int64)
    value = value_difference("w", large, large + 1)
    assert value is not None and value.different == 1
    text = value_difference("w", np.array(["a"], object), np.array(["b"], object))
    assert text is not None and text.absolute is None
    assert value_difference("w", np.zeros((0, 3)), np.zeros((0, 3))) is None


def test_one_pair_of_tensors_is_read_at_a_time(tmp_path: Path) -> None:
    paths = [tmp_path / "a.safetensors", tmp_path / "b.safetensors"]
    tensors = [(f"{n}.w", np.full(2**20, n, np.float32)) for n in range(16)]
    for path in paths:
        write_record(path, tensors)
    run("diff", *paths)  # imports
    tracemalloc.start()
    try:
        assert run("diff", *paths).exit_code == 0
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40e6  # all would be 128 MiB; a chunk of two in float64 is 16 MiB


def test_mistakes_name_the_file(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("x = 1\n")
    for second, code, text in (
        (tmp_path / "none.onnx", 3, "none.onnx"),
        (tmp_path / "none.py", 2, "expected a Python file"),
        (script, 2, "expected a class with weights"),
    ):
        answer = run("diff", DIGITS, second)
        assert (answer.exit_code, answer.stdout) == (code, "")
        assert text in answer.stderr and f"--> {second}" in answer.stderr


def test_long_tables_and_cells_are_cut(tmp_path: Path) -> None:
    many = tmp_path / "many.safetensors"
    write_record(many, [(f"w{n}", np.zeros(1, np.float32)) for n in range(150)])
    answer = run("diff", many, DIGITS)
    assert answer.exit_code == 1
    assert len(answer.stdout.splitlines()) == 103 and "more" in answer.stdout
    lines = run("diff", DIGITS, WAVES).stdout.splitlines()
    assert max(map(len, lines)) < 200 and any("..." in line for line in lines)


@pytest.mark.parametrize("name", ["input", "bytes", "lambda", "x"])
def test_reserved_names_are_those_of_the_file(name: str, tmp_path: Path) -> None:
    """A module has ``input_`` for ``input``; comparisons and exports have the name."""
    node = helper.make_node("Relu", [name], ["return"])
    proto = model(graph([node], {name: ["n", 3]}, ("return",)))
    original = saved(tmp_path / "net.onnx", proto)
    module, exported = tmp_path / "net.py", tmp_path / "back.onnx"
    assert run(original, "-o", module).exit_code == 0
    assert run("diff", original, module).exit_code == 0
    assert run("export", module, "-o", exported).exit_code == 0
    back = onnx.load(str(exported)).graph
    assert [value.name for value in (*back.input, *back.output)] == [name, "return"]


@pytest.mark.parametrize("name", ["input_1:0", "x.1", "onnx::Add_0", "input"])
def test_names_that_are_no_identifiers_do_not_differ_from_their_arguments(
    name: str, tmp_path: Path
) -> None:
    nodes = [helper.make_node("Relu", [name], ["y"])]
    path = saved(tmp_path / "net.onnx", model(graph(nodes, {name: ["batch", 3]})))
    module = tmp_path / "net.py"
    assert run(path, "-o", module).exit_code == 0
    for pair in ((path, module), (module, path)):
        answer = run("diff", *pair)
        assert answer.exit_code == 0, answer.output
