"""Kinds of files, whatever they are called."""

import pickle
import sys
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest
from onnx import helper

from burn.record import files
from burn_import.file_kinds import FileKind, described, file_kind, head_kind
from burn_import.foreign import _NAMES
from burn_import.frontends import checkpoints
from burn_import.frontends.onnx import read
from burn_ir import ModelError, UnreadableFile
from tests.importer.onnx_files import graph, model, saved

JSON = b'{"weight_map": {}}'
XML = b'<?xml version="1.0"?>\n'
ORT = "model in the format of onnxruntime"


def field(number: int, content: bytes) -> bytes:
    """Return a field of protobuf that has a length."""
    length = len(content)
    size = (
        bytes([length]) if length < 128 else bytes([length % 128 + 128, length // 128])
    )
    return bytes([number << 3 | 2]) + size + content


#: Two nodes, each with a name and an operator.
GRAPH_DEF = field(1, field(1, b"x") + field(2, b"Placeholder")) + field(
    1, field(1, b"dense/MatMul") + field(2, b"MatMul") + field(3, b"x")
)
#: The version, and a graph whose description begins with the list of its operators.
SAVED_MODEL = b"\x08\x01" + field(
    2, field(1, field(2, field(1, field(1, b"Placeholder") * 20))) + GRAPH_DEF
)


@pytest.mark.parametrize(
    ("name", "content", "kind", "words"),
    [
        ("a.onnx", b"\x08\x07\x12\x00", FileKind.ONNX, ""),
        ("a.bin", b"anything", FileKind.ONNX, ""),
        ("a.json", JSON, FileKind.OTHER, "JSON text"),
        ("a.index.json", JSON, FileKind.WEIGHTS, "JSON text"),
        ("a.onnx", b"\x80\x02}q\x00.", FileKind.WEIGHTS, "pickle"),
        ("a.onnx", b"<html>", FileKind.OTHER, "HTML page"),
        ("a.trt", b"ftrt\x00\x01", FileKind.OTHER, "TensorRT engine"),
        ("a.ort", b"\x1c\0\0\0ORTM", FileKind.OTHER, f"{ORT} (.ort)"),
        ("a.pte", b"\x1c\0\0\0ET12", FileKind.OTHER, "ExecuTorch program (.pte)"),
        ("a.param", b"7767517\n3 3\n", FileKind.OTHER, "ncnn model (.param)"),
        ("a.xml", XML + b'<net name="a">', FileKind.OTHER, "OpenVINO model (.xml)"),
        ("a.xml", XML + b"<svg>", FileKind.ONNX, ""),
        ("a.pb", GRAPH_DEF, FileKind.OTHER, "graph of TensorFlow (.pb)"),
        ("a.pb", SAVED_MODEL, FileKind.OTHER, "SavedModel of TensorFlow"),
        ("a.caffemodel", b"\n\x05LeNet", FileKind.ONNX, ""),
    ],
)
def test_the_first_bytes_decide(
    tmp_path: Path, name: str, content: bytes, kind: FileKind, words: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert file_kind(path) is kind
    assert described(path) == words


def test_a_missing_file_is_left_to_the_reader_of_onnx(tmp_path: Path) -> None:
    assert file_kind(tmp_path / "a.onnx") is FileKind.ONNX
    assert file_kind(tmp_path / "a.index.json") is FileKind.WEIGHTS
    assert described(tmp_path / "a.onnx") == ""


@pytest.mark.parametrize(
    ("foreign", "kind"),
    [
        (files.EXPORTED, FileKind.EXPORTED_PROGRAM),
        (files.TORCHSCRIPT, FileKind.TORCHSCRIPT),
        (files.TORCH, FileKind.WEIGHTS),
        (files.SAFETENSORS, FileKind.WEIGHTS),
        (files.GGUF, FileKind.OTHER),
    ],
)
def test_archives_have_a_reader(foreign: files.Foreign, kind: FileKind) -> None:
    assert head_kind(foreign) is kind


def test_a_keras_archive_is_known_by_its_first_file(tmp_path: Path) -> None:
    path = tmp_path / "a.keras"
    with ZipFile(path, "w") as archive:
        archive.writestr("metadata.json", '{"keras_version": "3.0"}')
        archive.writestr("config.json", "{}")
    assert described(path) == "Keras model (.keras)"


@pytest.mark.parametrize("name", sorted(_NAMES))
def test_the_name_of_a_file_that_is_not_onnx_says_what_it_may_be(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / f"net{name}"
    path.write_bytes(b"\xff\x0f\x7f" * 20)
    named = _NAMES[name]
    with pytest.raises(UnreadableFile, match="by its name this is a") as error:
        read(path)
    assert named.kind in str(error.value) and named.remedy in str(error.value)
    other = path.rename(tmp_path / "net.onnx")
    with pytest.raises(UnreadableFile, match="damaged or cut off"):
        read(other)


def test_an_onnx_model_may_have_any_name(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    path = saved(tmp_path / "net.engine", model(graph(nodes, {"x": [2]})))
    assert read(path).graph.outputs == ("y",)


class _Estimator:
    """A stand-in for an object of scikit-learn, whose class is not imported."""


_Estimator.__module__, _Estimator.__qualname__ = "sklearn.linear_model", "Ridge"


def test_pickles_of_scikit_learn_are_sent_to_its_converter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = ModuleType("sklearn.linear_model")
    holder.Ridge = _Estimator  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", holder)
    estimator = _Estimator()
    estimator.__dict__["coef_"] = [1.0]
    content = pickle.dumps(estimator)
    path = tmp_path / "net.pkl"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="Ridge, which is not built.*skl2onnx.to_onnx"):
        checkpoints.read(path)
    path = tmp_path / "net.joblib"  # an array between instructions
    path.write_bytes(content[:-8] + b"\x01\x00" + content[-8:])
    with pytest.raises(ModelError, match="got a file of joblib.*skl2onnx.to_onnx"):
        checkpoints.read(path)
