"""Arrays that are numbers of the program stand in the source, not in the record."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import burn
from burn_import import load
from burn_import.pipeline import import_model
from tests.importer.onnx_files import saved
from tests.importer.roles.checks import state_of
from tests.importer.torch_files import Array, drawn, exported, node
from tests.modules import call, onnxruntime_outputs

X = drawn(2, 12, 12, seed=9)
TRIANGLE = np.tri(12, dtype=np.float32)
MASK = np.where(TRIANGLE > 0, 0, -1e9).astype(np.float32)
COUNTED = np.arange(3, 51, 4).astype(np.float32)


def imported(
    path: Path, nodes: list[onnx.NodeProto], weights: dict[str, Array], **more: str
) -> tuple[str, list[str], list[str]]:
    """Return the source, the parameters and the buffers; results are onnxruntime's."""
    proto = exported(nodes, weights, list(X.shape))
    proto.producer_name = more.get("producer", "pytorch")
    file = saved(path / "model.onnx", proto)
    model = load(file)
    (expected,) = onnxruntime_outputs(file, {"x": X})
    np.testing.assert_allclose(call(model, [X])[0], expected, rtol=1e-5, atol=1e-5)
    state = state_of(model)
    buffers = sorted(set(state.arrays) - state.parameters)
    return import_model(file).text, sorted(state.parameters), buffers


@pytest.mark.parametrize(
    ("array", "source"),
    [
        (np.full((2, 12, 12), 2.5, np.float32), "ops.full((2, 12, 12), 2.5)"),
        (COUNTED[None, None], ", 4).cast(burn.float32).reshape(1, 1, -1)"),
        (TRIANGLE[None], "ops.trilu("),
        (MASK[None], "ops.trilu("),
        (np.triu(TRIANGLE * 0 + 7, -2)[None], "ops.trilu("),
        (np.array([[[1.5], [0.1], [-2]]], np.float32), "[[[1.5], [0.1], [-2.0]]]"),
        (np.full((1, 3, 1), 1.5, np.float32), "ops.full((2, 3, 12), 1.5)"),
    ],
    ids=["full", "arange", "tril", "mask", "triu", "small", "short full"],
)
def test_arrays_of_a_pattern_are_computed(
    tmp_path: Path, array: Array, source: str
) -> None:
    nodes = [
        node("Expand", "val_3 val_4", "e", "head"),
        node("Concat", "x e", "m", "head", axis=1),
        node("Mul", "m head.scale", "y", "head"),
    ]
    shape = np.array([2, array.shape[1], 12])
    weights = {"val_3": array, "val_4": shape, "head.scale": drawn(12)}
    text, parameters, buffers = imported(tmp_path, nodes, weights)
    assert parameters == ["head.scale"] and not buffers
    assert source in text


def test_other_arrays_stay_buffers(tmp_path: Path) -> None:
    nodes = [
        node("Sub", "x val_3", "m", "head"),
        node("Mul", "m head.scale", "y", "head"),
    ]
    weights = {"val_3": drawn(12, 12), "head.scale": drawn(12)}
    _, parameters, buffers = imported(tmp_path, nodes, weights)
    assert parameters == ["head.scale"] and len(buffers) == 1


def test_arrays_with_a_key_keep_it(tmp_path: Path) -> None:
    nodes = [node("Add", "x head.bias", "y", "head")]
    zeros = np.zeros((12, 12), np.float32)
    _, parameters, _ = imported(tmp_path, nodes, {"head.bias": zeros})
    assert parameters == ["head.bias"]


def test_the_gradient_goes_through_what_is_computed(tmp_path: Path) -> None:
    nodes = [node("Mul", "x val_3", "m", "h"), node("Mul", "m h.scale", "y", "h")]
    weights = {"val_3": TRIANGLE, "h.scale": drawn(12)}
    proto = exported(nodes, weights, list(X.shape))
    model = load(saved(tmp_path / "model.onnx", proto)).to(burn.Autodiff(burn.Cpu()))
    assert callable(model)
    for called in (model, burn.compile(model)):
        grads = called(burn.tensor(X)).sum().backward()
        ((_, box),) = model.parameters()
        expected = (X * TRIANGLE).sum((0, 1))
        np.testing.assert_allclose(grads[box].numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("producer", ["tf2onnx", "keras2onnx", "skl2onnx", ""])
def test_roles_of_other_producers_go_by_use(tmp_path: Path, producer: str) -> None:
    nodes = [
        node("Greater", "x model/Greater/y:0", "g", ""),
        node("Where", "g x model/fill:0", "w", ""),
        node("Clip", "w low high", "c", ""),
        node("QuantizeLinear", "c scale zero", "q", "", axis=1),
        node("DequantizeLinear", "q scale zero", "d", "", axis=1),
        node("Max", "d model/floor:0", "f", ""),
        node("Mul", "f model/gain:0", "y", ""),
    ]
    weights = {
        "model/Greater/y:0": drawn(12, seed=3),
        "model/fill:0": np.full((12, 12), -5, np.float32),
        "low": np.array(-1, np.float32),
        "high": np.array(2, np.float32),
        "scale": abs(drawn(12)) / 64,
        "zero": np.zeros(12, np.uint8) + 128,
        "model/floor:0": np.full(12, -0.5, np.float32),
        "model/gain:0": drawn(12, seed=4),
    }
    proto = {"producer": producer}
    text, parameters, buffers = imported(tmp_path, nodes, weights, **proto)
    assert len(parameters) == 1, text
    assert len(buffers) == 3 and ", -5.0)" in text and "ops.full" not in text


def test_an_expanded_scalar_is_a_number(tmp_path: Path) -> None:
    """Keras's initial states are an expanded zero."""
    nodes = [
        node("NonZero", "x", "found", ""),
        node("Shape", "found", "sizes", ""),
        node("Expand", "model/zeros:0 sizes", "state", ""),
        node("ReduceSum", "state", "sum", "", keepdims=0),
        node("Add", "x sum", "a", ""),
        node("Mul", "a model/gain:0", "y", ""),
    ]
    weights = {"model/zeros:0": np.zeros((), np.float32), "model/gain:0": drawn(12)}
    _, parameters, buffers = imported(tmp_path, nodes, weights, producer="tf2onnx")
    assert len(parameters) == 1 and not buffers


def test_equal_numbers_are_one_where_they_are_broadcast(tmp_path: Path) -> None:
    nodes = [
        node("Mul", "x val_3", "m", "head"),
        node("Mul", "m head.scale", "y", "head"),
    ]
    weights = {"val_3": np.full((12, 1), 2.5, np.float32), "head.scale": drawn(12)}
    text, _, buffers = imported(tmp_path, nodes, weights)
    assert not buffers and "x * 2.5" in text


def test_zeros_before_a_loop_stay_an_array(tmp_path: Path) -> None:
    nodes = [
        node("Mul", "x val_3", "m", "head"),
        node("Add", "m head.bias", "y", "head"),
    ]
    weights = {"val_3": np.zeros((12, 12), np.float32), "head.bias": drawn(12)}
    text, _, buffers = imported(tmp_path, nodes, weights)
    assert not buffers and "ops.full((12, 12), 0.0)" in text
