"""Kinds of files are named by a small network and by Magika's."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.test_house import ROOT

#: Files of the repository and what they are; the network did not learn from them.
FILES = {
    "README.md": "markdown",
    "examples/web/run.py": "python",
    "docs/images/web.png": "png",
    "models/digits/digits.onnx": "onnx",
    "models/digits/digits_test.npz": "npz",
    "models/digits/metrics.json": "json",
}
#: Where Magika's network has these kinds among its 214 outputs.
OUTPUTS = {
    "json": 87,
    "markdown": 100,
    "npz": 111,
    "onnx": 120,
    "png": 133,
    "python": 143,
}


@pytest.mark.parametrize("example", ["filetype"], indirect=True)
def test_names_of_files_do_not_matter(
    example: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copies = {}
    for number, (name, kind) in enumerate(FILES.items()):
        copies[str(shutil.copy(ROOT / name, tmp_path / f"file{number}"))] = kind
    assert example.main(list(copies)) == copies
    assert capsys.readouterr().out.count("%") == len(FILES)


@pytest.mark.parametrize("example", ["filetype"], indirect=True)
def test_magika_agrees(
    example: Any, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    zoo: Path = request.config.getoption("--zoo")
    model = zoo / "real" / "magika" / "magika_v3_3.onnx"
    if not model.is_file():
        pytest.skip("no models (see --zoo): magika not checked")
    labels = [f"kind {number}" for number in range(214)]
    for kind, number in OUTPUTS.items():
        labels[number] = kind
    config = tmp_path / "config.json"
    content = {"target_labels_space": labels, "thresholds": {"markdown": 0.75}}
    config.write_text(json.dumps(content), "utf-8")
    files = {str(ROOT / name): kind for name, kind in FILES.items()}
    options = ["--model", str(model), "--config", str(config)]
    assert example.main([*options, *files]) == files
    content["target_labels_space"] = labels[1:]
    config.write_text(json.dumps(content), "utf-8")
    with pytest.raises(SystemExit, match="expected 214 labels, got 213"):
        example.main([*options, *files])


@pytest.mark.parametrize("example", ["filetype"], indirect=True)
def test_an_empty_and_a_short_file(example: Any, tmp_path: Path) -> None:
    path = tmp_path / "short"
    path.write_bytes(b"  ab ")
    row = example.tokens(path)
    assert row.shape == (2048,)
    assert row[:4].tolist() == [97, 98, 32, 256]
    assert row[-4:].tolist() == [32, 32, 97, 98]
    path.write_bytes(b"")
    assert set(example.tokens(path).tolist()) == {256}
