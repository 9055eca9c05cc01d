"""Updates of the ONNX file that a module was imported from."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import burn
from burn_import import load
from burn_import.export.errors import ExportError
from burn_import.export.update import TensorLocation, update_onnx
from burn_import.output import OutputRefused
from tests.modules import Array, call, onnxruntime_outputs

ROOT = Path(__file__).parent.parent
DIGITS = ROOT.parent / "models" / "digits" / "digits.onnx"
UPDATED = ("digits", "residual", "transformer", "embedding")


def path_of(name: str) -> Path:
    """Return the file of a model."""
    return DIGITS if name == "digits" else ROOT / "golden" / name / "model.onnx"


def trained(path: Path) -> dict[str, Array]:
    """Return the weights of a model, each float a little larger."""
    state = load(path).state_dict()
    arrays = {key: value.numpy() for key, value in state.items()}
    return {
        k: a * 1.01 + 0.001 if a.dtype.kind == "f" else a for k, a in arrays.items()
    }


@pytest.mark.parametrize("name", UPDATED)
def test_an_updated_file_has_the_trained_weights(name: str, tmp_path: Path) -> None:
    weights = {
        k: v.astype(np.float32) if v.dtype.kind == "f" else v
        for k, v in trained(path_of(name)).items()
    }
    output = tmp_path / "out.onnx"
    report = update_onnx(path_of(name), weights, output)
    assert report.replaced and not report.without and not report.missing
    assert sorted(report.replaced + report.unchanged) == sorted(weights)
    again = load(output).state_dict()
    assert again.keys() == weights.keys()
    for key, value in again.items():
        np.testing.assert_array_equal(value.numpy(), weights[key])


def test_onnxruntime_gives_the_results_of_the_trained_module(tmp_path: Path) -> None:
    weights = {k: v.astype(np.float32) for k, v in trained(DIGITS).items()}
    update_onnx(DIGITS, weights, tmp_path / "out.onnx")
    model = load(DIGITS).load_state_dict(weights)
    images = np.random.default_rng(0).random((3, 1, 8, 8), np.float32)
    name = onnx.load(str(DIGITS)).graph.input[0].name
    (actual,) = onnxruntime_outputs(tmp_path / "out.onnx", {name: images})
    np.testing.assert_allclose(actual, call(model, [images])[0], rtol=1e-4, atol=1e-4)


def test_nodes_and_names_of_the_file_stay(tmp_path: Path) -> None:
    weights = {k: v.astype(np.float32) for k, v in trained(DIGITS).items()}
    update_onnx(DIGITS, weights, tmp_path / "out.onnx")
    before, after = onnx.load(str(DIGITS)), onnx.load(str(tmp_path / "out.onnx"))
    assert list(before.graph.node) == list(after.graph.node)
    names = [tensor.name for tensor in before.graph.initializer]
    assert names == [tensor.name for tensor in after.graph.initializer]


def two_layers() -> onnx.ModelProto:
    """Return a model whose two biases, and two weights, are equal."""
    rng = np.random.default_rng(2)
    weight = rng.random((4, 4), np.float32)
    bias = np.zeros(4, np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "onnx::MatMul_1"], ["a"]),
        helper.make_node("Add", ["first.bias", "a"], ["b"]),
        helper.make_node("MatMul", ["b", "onnx::MatMul_2"], ["c"]),
        helper.make_node("Add", ["second.bias", "c"], ["y"]),
    ]
    arrays = {
        "onnx::MatMul_1": weight,
        "onnx::MatMul_2": weight,
        "first.bias": bias,
        "second.bias": bias,
    }
    stored = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4])
    graph = helper.make_graph(nodes, "net", [x], [y], stored)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def test_tensors_of_equal_contents_are_told_apart(tmp_path: Path) -> None:
    original, output = tmp_path / "net.onnx", tmp_path / "out.onnx"
    onnx.save(two_layers(), str(original))
    model = load(original)
    rng = np.random.default_rng(5)
    weights = {
        key: rng.random(value.shape, np.float32)
        for key, value in model.state_dict().items()
    }
    report = update_onnx(original, weights, output)
    assert sorted(report.replaced) == sorted(weights)
    x = rng.random((2, 4), np.float32)
    (actual,) = onnxruntime_outputs(output, {"x": x})
    expected = model.load_state_dict(weights)(burn.tensor(x)).numpy()  # type: ignore[operator]
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_weights_without_a_counterpart_are_listed(tmp_path: Path) -> None:
    path, output = path_of("lstm"), tmp_path / "out.onnx"
    weights = trained(path)
    weights = {k: v.astype(np.float32) for k, v in weights.items()} | {
        "head.scale": np.ones(3)
    }
    with pytest.raises(ExportError) as caught:
        update_onnx(path, weights, output)
    assert "head.scale (no key)" in str(caught.value)
    assert "computed from several tensors" in str(caught.value)
    assert not output.exists()
    report = update_onnx(path, weights, output, partial=True)
    assert report.unknown == ["head.scale"] and report.without and output.exists()


def test_wrong_shapes_and_existing_files_are_refused(tmp_path: Path) -> None:
    weights = {k: v.astype(np.float32) for k, v in trained(DIGITS).items()}
    key = next(iter(weights))
    output = tmp_path / "out.onnx"
    with pytest.raises(
        ExportError, match=rf"{key}: expected .*, got \[2\].*export_onnx"
    ):
        update_onnx(DIGITS, {**weights, key: np.ones(2, np.float32)}, output)
    output.write_bytes(b"mine")
    with pytest.raises(OutputRefused):
        update_onnx(DIGITS, weights, output)
    assert output.read_bytes() == b"mine"


def test_weights_that_the_importer_would_read_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrongly written tensor is detected, and no file is written."""

    def halved(self: TensorLocation, array: Array, like: Array) -> Array:
        turned = array.T if self.transposed else array
        return (turned.reshape(like.shape) / 2).astype(like.dtype)

    monkeypatch.setattr(TensorLocation, "contents", halved)
    weights = {k: v.astype(np.float32) for k, v in trained(DIGITS).items()}
    with pytest.raises(ExportError, match="reads otherwise"):
        update_onnx(DIGITS, weights, tmp_path / "out.onnx")
    assert not (tmp_path / "out.onnx").exists()
