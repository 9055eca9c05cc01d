"""The manifest of the models, the committed files, and the fetching of the others."""

import io
import json
import re
from contextlib import AbstractContextManager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import IO
from urllib.error import URLError

import numpy as np
import onnx
import onnxruntime
import pytest

from models.fetch import (
    FetchError,
    Model,
    Opener,
    fetch,
    main,
    open_https,
    read_manifest,
)

MODELS = Path(__file__).parent.parent / "models"
MANIFEST = read_manifest()
COMMITTED = [model for model in MANIFEST if model.url is None]
PUBLIC = [model for model in MANIFEST if model.url is not None]
CONTENT = b"not really a model" * 9000
WANTED = Model(
    name="wanted",
    path="wanted.onnx",
    url="https://example.org/wanted.onnx",
    license="MIT",
    sha256=sha256(CONTENT).hexdigest(),
    bytes=len(CONTENT),
    inputs={"x": "float32[2]"},
)


def serving(content: bytes) -> Opener:
    """Return an opener that answers every address with ``content``."""

    def opener(url: str) -> AbstractContextManager[IO[bytes]]:
        return io.BytesIO(content)

    return opener


def test_manifest_names_are_unique() -> None:
    assert len({model.name for model in MANIFEST}) == len(MANIFEST)
    assert len({model.path for model in MANIFEST}) == len(MANIFEST)


@pytest.mark.parametrize("model", MANIFEST, ids=lambda model: model.name)
def test_manifest_entry_is_complete(model: Model) -> None:
    assert re.fullmatch(r"[a-z0-9-]+", model.name)
    assert re.fullmatch(r"[0-9a-f]{64}", model.sha256)
    assert re.fullmatch(r"(MIT|Apache-2\.0)( OR Apache-2\.0)?", model.license)
    assert isinstance(model.bytes, int)
    assert model.bytes > 0
    assert ".." not in Path(model.path).parts
    assert not Path(model.path).is_absolute()
    assert model.inputs
    for described in model.inputs.values():
        assert re.fullmatch(r"(float|int)\d+\[[\w?]*(, [\w?]+)*\]", described)


@pytest.mark.parametrize("model", PUBLIC, ids=lambda model: model.name)
def test_public_models_are_pinned_to_a_commit(model: Model) -> None:
    assert model.url is not None
    assert re.match(r"https://[\w.]+/[\w.-]+/[\w.-]+/[0-9a-f]{40}/", model.url)


def test_unknown_manifest_fields_are_refused(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"models": [{"name": "x", "color": "red"}]}))
    with pytest.raises(TypeError, match="color"):
        read_manifest(manifest)


@pytest.mark.parametrize("model", COMMITTED, ids=lambda model: model.name)
def test_committed_models_are_what_the_manifest_says(model: Model) -> None:
    data = (MODELS / model.path).read_bytes()
    assert len(data) == model.bytes
    assert sha256(data).hexdigest() == model.sha256
    assert b"stack_trace" not in data
    graph = onnx.load_from_string(data).graph
    assert [value.name for value in graph.input] == list(model.inputs)


@pytest.mark.parametrize("model", COMMITTED, ids=lambda model: model.name)
def test_committed_models_reach_the_accuracy_of_their_training(model: Model) -> None:
    path = MODELS / model.path
    metrics = json.loads((path.parent / "metrics.json").read_text("utf-8"))
    with np.load(path.with_name(f"{path.stem}_test.npz")) as data:
        labels = data["labels"]
        samples = data[next(name for name in data.files if name != "labels")]
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (logits,) = session.run(None, {next(iter(model.inputs)): samples})
    correct = int((np.asarray(logits).argmax(1) == labels).sum())
    assert correct == metrics["correct"]
    assert correct / len(labels) == metrics["accuracy"]


def test_fetch_writes_the_file(tmp_path: Path) -> None:
    path = fetch(WANTED, tmp_path, serving(CONTENT))
    assert path == tmp_path / "wanted.onnx"
    assert path.read_bytes() == CONTENT
    assert list(tmp_path.iterdir()) == [path]


def test_fetch_does_not_ask_twice(tmp_path: Path) -> None:
    first = fetch(WANTED, tmp_path, serving(CONTENT))
    assert fetch(WANTED, tmp_path, serving(b"")) == first


def test_fetch_replaces_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "wanted.onnx").write_bytes(CONTENT[:-1])
    assert fetch(WANTED, tmp_path, serving(CONTENT)).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (CONTENT[:-1] + b"!", f"expected sha256 {WANTED.sha256}"),
        (CONTENT[:-1], f"got .* \\({len(CONTENT) - 1} bytes\\)"),
        (CONTENT + b"!", f"longer than {len(CONTENT)} bytes"),
    ],
    ids=["changed", "shorter", "longer"],
)
def test_fetch_refuses_other_content(
    tmp_path: Path, content: bytes, message: str
) -> None:
    with pytest.raises(FetchError, match=message):
        fetch(WANTED, tmp_path, serving(content))
    assert not list(tmp_path.iterdir())


def test_fetch_reports_a_broken_connection(tmp_path: Path) -> None:
    def opener(url: str) -> AbstractContextManager[IO[bytes]]:
        raise URLError("no route")

    with pytest.raises(FetchError, match="wanted: https://example.org.*no route"):
        fetch(WANTED, tmp_path, opener)
    assert not list(tmp_path.iterdir())


def test_fetch_wants_https(tmp_path: Path) -> None:
    local = tmp_path / "local.onnx"
    local.write_bytes(CONTENT)
    with pytest.raises(FetchError, match="expected an https address"):
        fetch(replace(WANTED, url=local.as_uri()), tmp_path / "cache", open_https)
    assert not list((tmp_path / "cache").iterdir())


def test_committed_models_are_not_fetched(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="is committed"):
        fetch(replace(WANTED, url=None), tmp_path, serving(CONTENT))


def test_list_shows_every_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [model.name for model in MANIFEST]


def test_unknown_names_are_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such-model"]) == 2
    assert "no-such-model" in capsys.readouterr().err
