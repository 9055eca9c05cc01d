"""Exported programs, made by hand: what their ``state_dict`` has and has not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from burn_import import load
from burn_import.pipeline import import_model
from tests.importer.exported_files import call, meta, program, ref, saved
from tests.importer.torch_files import Array, drawn

TWO = meta("float32", [2])


def multiplied(
    weights: dict[str, Array], buffers: tuple[str, ...], path: Path
) -> tuple[Any, Path]:
    """Return the module of a program that multiplies by ``scale``, and its file."""
    held = "b_scale" if "scale" in buffers else "p_scale"
    nodes = [call("aten.mul.Tensor", "mul", self=ref("x"), other=ref(held))]
    content = program({"x": TWO}, weights, nodes, {"mul": TWO}, ["mul"], buffers)
    for spec in content["graph_module"]["signature"]["input_specs"]:
        if "buffer" in spec:
            spec["buffer"]["persistent"] = spec["buffer"]["buffer_name"] != "scale"
    file = saved(path, content, weights)
    return load(file), file


def test_a_buffer_that_is_not_persistent_is_in_no_state_dict(tmp_path: Path) -> None:
    weights = {"scale": drawn(2), "mean": drawn(2, seed=1)}
    model, _ = multiplied(weights, ("scale", "mean"), tmp_path)
    assert set(model.state_dict()) == {"mean"}
    model.load_state_dict({"mean": drawn(2, seed=2)})
    x = drawn(2, seed=3)
    actual = model(burn.tensor(x)).numpy()
    np.testing.assert_array_equal(actual, x * weights["scale"])


def test_what_is_not_read_is_at_its_key(tmp_path: Path) -> None:
    weights = {
        "scale": drawn(2),
        "pooler.dense.weight": drawn(3, 2),
        "pooler.dense.bias": drawn(3),
        "heads.1.weight": drawn(4),
        "count": np.array(3),
    }
    model, file = multiplied(weights, ("count",), tmp_path)
    state = {key: tensor.numpy() for key, tensor in model.state_dict().items()}
    assert set(state) == set(weights)
    for key, array in weights.items():
        np.testing.assert_array_equal(state[key], array)
    model.load_state_dict({key: np.array(a + 1) for key, a in weights.items()})
    trained = {key for key, _ in model.parameters()}
    assert trained == set(weights) - {"count"}
    assert import_model(file).notes == ()


@pytest.mark.parametrize("count", [64, 65])
def test_many_tensors_that_are_not_read_are_left_out(
    tmp_path: Path, count: int
) -> None:
    spare = {f"spare_{number}": drawn(2, seed=number) for number in range(count)}
    model, file = multiplied({"scale": drawn(2), **spare}, (), tmp_path)
    has_room = count == 64
    assert (set(model.state_dict()) == {"scale", *spare}) == has_room
    notes = " ".join(import_model(file).notes)
    assert ("never reads 65 of the tensors" in notes) != has_room


def test_zeros_that_are_written_to_a_tensor_have_no_key(tmp_path: Path) -> None:
    weights = {"first": drawn(2)}
    nodes = [
        call("aten.zero.default", "zero_", self=ref("p_first")),
        call("aten.mul.Tensor", "mul", self=ref("x"), other=ref("p_first")),
        call("aten.maximum.default", "maximum", self=ref("mul"), other=ref("zero_")),
    ]
    types = {"zero_": TWO, "mul": TWO, "maximum": TWO}
    content = program({"x": TWO}, weights, nodes, types, ["maximum"], ())
    file = saved(tmp_path, content, weights)
    model: Any = load(file)
    x = drawn(2, seed=3)
    actual = model(burn.tensor(x)).numpy()
    np.testing.assert_array_equal(actual, np.maximum(x * weights["first"], 0))
    assert {key for key, _ in model.boxes()} == {"first"}


def test_long_contents_of_a_buffer_are_computed_from_it(tmp_path: Path) -> None:
    weights = {"table": drawn(64, 2), "ids": np.arange(64)[None]}
    part, rows = meta("int64", [1, 48]), meta("float32", [1, 48, 2])
    piece: dict[str, Any] = {
        name: {"as_int": number}
        for name, number in {"dim": 1, "start": 0, "end": 48}.items()
    }
    nodes = [
        call("aten.slice.Tensor", "part", self=ref("b_ids"), **piece),
        call(
            "aten.embedding.default", "rows", weight=ref("p_table"), indices=ref("part")
        ),
        call("aten.mul.Tensor", "mul", self=ref("rows"), other=ref("x")),
    ]
    types = {"part": part, "rows": rows, "mul": rows}
    content = program({"x": TWO}, weights, nodes, types, ["mul"], ("ids",))
    file = saved(tmp_path, content, weights)
    model: Any = load(file)
    x = drawn(2, seed=3)
    actual = model(burn.tensor(x)).numpy()
    np.testing.assert_array_equal(actual, weights["table"][None, :48] * x)
    assert "self.ids[:, :48]" in import_model(file).text
