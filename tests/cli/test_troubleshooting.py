"""The broken inputs of ``docs/troubleshooting.md``: code, message and help of each."""

import gzip
import json
import re
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper

import burn
from burn_import.cli.command import burn_import
from tests.importer.onnx_files import graph, model, saved, stored
from tests.modules import generate, import_file
from tests.test_house import ROOT

PAGE = ROOT / "docs" / "troubleshooting.md"
INPUTS = {"x": ["batch", 3]}
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0a\nsize 24\n"
#: Builders of broken models, which return the arguments of the command, by row.
MODELS: dict[str, Callable[[], Sequence[str]]] = {}
#: Calls that fail in a program, by row.
CALLS: dict[str, Callable[[], Any]] = {}


def model_row(title: str) -> Callable[[Any], Any]:
    """Register the builder of a row's model."""
    return lambda build: MODELS.setdefault(title, build)


def call_row(title: str) -> Callable[[Any], Any]:
    """Register the failing call of a row."""
    return lambda call: CALLS.setdefault(title, call)


def net(weights: Sequence[TensorProto] = ()) -> onnx.ModelProto:
    """Return a model y = x + w, or one that adds each of some weights."""
    weights = weights or [stored("w", np.arange(3, dtype=np.float32))]
    values = ["x", *(f"h{at}" for at in range(1, len(weights))), "y"]
    nodes = [
        helper.make_node("Add", [values[at], weight.name], [values[at + 1]])
        for at, weight in enumerate(weights)
    ]
    return model(graph(nodes, INPUTS, initializers=tuple(weights)))


def with_operators(*names: str, domain: str = "", opset: int = 17) -> list[str]:
    """Write a chain of operators that may not exist."""
    values = ["x", *(f"h{at}" for at in range(1, len(names))), "y"]
    nodes = [
        helper.make_node(name, [values[at]], [values[at + 1]], "head", domain=domain)
        for at, name in enumerate(names)
    ]
    proto = model(graph(nodes, INPUTS), opset)
    if domain:
        proto.opset_import.append(helper.make_opsetid(domain, 1))
    return written(proto.SerializeToString())


def with_external(location: str, content: bytes | None = None) -> list[str]:
    """Write a model of two weights in another file, and the file's content."""
    weights = []
    for number in range(2):
        tensor = TensorProto(name=f"w{number}", data_type=TensorProto.FLOAT, dims=[3])
        tensor.data_location = TensorProto.EXTERNAL
        place = {"location": location, "offset": str(40 * number), "length": "12"}
        for key, value in place.items():
            tensor.external_data.add(key=key, value=value)
        weights.append(tensor)
    if content is not None:
        Path(location).write_bytes(content)
    return written(net(weights).SerializeToString())


def written(content: bytes, name: str = "net.onnx") -> list[str]:
    """Write a file, and return its name as arguments of the command."""
    Path(name).write_bytes(content)
    return [name]


@model_row("a name that is misspelt")
def misspelt() -> list[str]:
    saved(Path("net.onnx"), net())
    return ["nte.onnx"]


@model_row("a folder")
def folder() -> list[str]:
    Path("net").mkdir()
    return ["net"]


@model_row("a zip archive")
def zip_archive() -> list[str]:
    with zipfile.ZipFile("net.zip", "w") as archive:
        archive.writestr("net.onnx", net().SerializeToString())
    return ["net.zip"]


@model_row("an index without its shards")
def index_without_shards() -> list[str]:
    files = {f"{at}.weight": f"model-0000{at}-of-00002.safetensors" for at in (1, 2)}
    content = json.dumps({"metadata": {}, "weight_map": files}).encode()
    return written(content, "model.safetensors.index.json")


@model_row("an option that does not apply, such as `--config` to an ONNX model")
def option_of_weights() -> list[str]:
    saved(Path("net.onnx"), net())
    return ["net.onnx", "--config", "config.json"]


@model_row("shapes that do not fit")
def shapes_that_do_not_fit() -> list[str]:
    weight = stored("w", np.zeros((4, 2), np.float32))
    node = helper.make_node("MatMul", ["x", "w"], ["y"], "head")
    proto = model(graph([node], INPUTS, initializers=(weight,)))
    return written(proto.SerializeToString())


@model_row("Core ML")
def core_ml() -> list[str]:
    """Version 4, a description of one input, field 500 (a neural network)."""
    feature = b"\x0a\x05image\x1a\x04\x22\x02\x08\x01"
    description = b"\x0a" + bytes([len(feature)]) + feature
    head = b"\x08\x04\x12" + bytes([len(description)]) + description
    return written(head + b"\xa2\x1f\x00", "net.mlmodel")


MODELS |= {
    "an empty file": lambda: written(b""),
    "a file that is cut off": lambda: written(net().SerializeToString()[:40]),
    "a pointer of Git LFS": lambda: written(POINTER),
    "an HTML page": lambda: written(b"<!DOCTYPE html>\n<html><title>404</title>"),
    "a compressed file": lambda: written(
        gzip.compress(net().SerializeToString()), "net.onnx.gz"
    ),
    "HDF5 of Keras": lambda: written(b"\x89HDF\r\n\x1a\n" + bytes(88), "net.h5"),
    "TFLite": lambda: written(b"\x1c\0\0\0TFL3" + bytes(24), "net.tflite"),
    "ONNX, with `-o net.safetensors`": lambda: [
        *written(net().SerializeToString()),
        *("-o", "net.safetensors"),
    ],
    "external data that is missing": lambda: with_external("net.onnx.data"),
    "external data that is a pointer": lambda: with_external("net.onnx.data", POINTER),
    "external data outside of the folder": lambda: with_external("../weights"),
    "an operator that is misspelt": lambda: with_operators("Gmem"),
    "several unknown operators": lambda: with_operators("Warp", "Fold"),
    "an unknown domain": lambda: with_operators("Spin", domain="com.acme"),
    "an opset that is too new": lambda: with_operators("Neg", "Relu", opset=99),
}


def generated() -> Any:
    """Return the generated module of a model, in the current folder."""
    return import_file(generate(saved(Path("net.onnx"), net()), Path.cwd())[0])


@call_row("a record that is missing")
def missing_record() -> None:
    module = generated()
    Path("net.safetensors").unlink()
    module.Net.load()


@call_row("a record that is damaged, with `verify=True`")
def damaged_record() -> None:
    module, record = generated(), Path("net.safetensors")
    content = bytearray(record.read_bytes())
    content[-1] ^= 1
    record.write_bytes(content)
    module.Net.load(verify=True)


@call_row("an input of another dtype")
def other_dtype() -> None:
    generated().Net.load()(burn.tensor(np.zeros((2, 3))))


@call_row("an attribute of PyTorch or NumPy, such as `x.view(3)`")
def attribute_of_torch() -> None:
    x: Any = burn.tensor([1.0, 2.0, 3.0])
    x.view(3)


@call_row("a function of PyTorch or NumPy in `burn`, such as `cat`")
def function_of_torch() -> None:
    name = "cat"
    getattr(burn, name)


def rows() -> dict[str, tuple[str, ...]]:
    """Return the cells of the page's tables of inputs, by first cell."""
    lines = PAGE.read_text("utf-8").splitlines()
    cells = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in lines
        if line.startswith("|")
    ]
    return {row[0].strip(): tuple(row[1:]) for row in cells if len(row) == 4}


HEADS = ("input", "---|---|---|---")


def pattern(message: str, remedy: str) -> str:
    """Return the regular expression of a row: code literally, dots for any text."""
    codes = [re.sub(r"^(`+)(.*)\1$", r"\2", cell.strip()) for cell in (message, remedy)]
    parts = [part for code in codes for part in code.split("...")]
    return ".*".join(map(re.escape, parts))


def one_line(text: str) -> str:
    """Return an error message with single spaces."""
    return " ".join(text.split())


def test_every_row_is_built() -> None:
    titles = {title for title in rows() if title not in HEADS}
    assert titles == MODELS.keys() | CALLS.keys()
    assert len(titles) == 27


@pytest.mark.parametrize("title", sorted(MODELS))
def test_the_command_says_what_to_do(
    title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    code, *cells = rows()[title]
    arguments = MODELS[title]()
    before = sorted(Path().iterdir())
    answer = CliRunner().invoke(burn_import, arguments)
    assert (answer.exit_code, answer.stdout) == (int(code), "")
    assert re.search(pattern(*cells), one_line(answer.stderr)), answer.stderr
    assert "\\n" not in answer.stderr
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize("title", sorted(CALLS))
def test_the_error_of_a_program_says_what_to_do(
    title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kind, *cells = rows()[title]
    with pytest.raises(Exception, match=pattern(*cells)) as caught:  # noqa: B017
        CALLS[title]()
    assert type(caught.value).__name__ == kind.strip("`")


def test_a_problem_that_several_tensors_share_is_explained_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(burn_import, with_external("net.onnx.data"))
    lines = answer.stderr.splitlines()
    assert [line.partition(" ")[0] for line in lines[:2]] == ["error[unreadable]:"] * 2
    assert "'w0'" in lines[0] and "'w1'" in lines[1] and str(tmp_path) in lines[1]
    assert answer.stderr.count("help:") == 1


def test_an_opset_that_is_too_new_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(burn_import, with_operators("Neg", "Relu", opset=99))
    assert answer.stderr.count("error[") == 1
