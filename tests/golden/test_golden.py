"""Generated sources that are committed: recorded, linted, type-checked and executed."""

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import black
import numpy as np
import pytest

from burn.nn import Module
from burn.record import record_sha256
from burn_import.options import Options
from burn_import.output import header, record_metadata
from burn_import.pipeline import Compiled, import_model, write_model
from tests.golden.make import BUILDERS
from tests.modules import Array, assert_close, call, import_file, value_names

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
OPTIONS = Options(class_name="Net", stem="model")
SOURCES = [str(HERE / name / "model.py") for name in BUILDERS]
#: A release changes no golden source.
VERSION = re.compile(r"(?<=^# Imported by burn-import )\S+")

each = pytest.mark.parametrize("name", BUILDERS)


def compiled(name: str) -> Compiled:
    """Return the generated module of a golden model."""
    return import_model(HERE / name / "model.onnx", OPTIONS)


def source(module: Compiled) -> str:
    """Return the whole file, header included, for version 0."""
    about = record_metadata(module.weights, module.source_sha256)
    record = record_sha256("net.safetensors", module.weights, about)
    head = header(module.origin, module.source_sha256, record, module.text)
    text = head + module.text
    return VERSION.sub("0", text)


def cases(name: str) -> Iterator[tuple[list[Array | None], dict[str, Array]]]:
    """Return inputs (None where left out) and expected outputs of a golden model."""
    path = HERE / name / "model.onnx"
    inputs, outputs = value_names(path, stored=True)
    with np.load(HERE / name / "io.npz") as data:
        sets = {key.partition(":")[0] for key in data}
        for number in sorted(name[3:] for name in sets if name.startswith("out")):
            given = [data.get(f"in{number}:{x}") for x in inputs]
            yield given, {x: data[f"out{number}:{x}"] for x in outputs}


@each
def test_the_source_is_the_committed_one(
    name: str, request: pytest.FixtureRequest
) -> None:
    path = HERE / name / "model.py"
    text = source(compiled(name))
    content = text.encode("ascii")
    is_stale = not path.exists() or path.read_bytes() != content
    if is_stale and request.config.getoption("--update-golden"):
        path.write_bytes(content)
    assert path.read_bytes().decode("ascii") == text


@each
def test_the_committed_source_agrees_with_onnxruntime(
    name: str, tmp_path: Path
) -> None:
    weights = write_model(compiled(name), tmp_path / "model.py").weights
    model: Module = import_file(HERE / name / "model.py").Net.load(weights)
    assert len(list(cases(name))) >= 1
    for inputs, expected in cases(name):
        assert_close(call(model, inputs), expected, rtol=1e-4, atol=1e-5)


@each
def test_black_has_nothing_to_change(name: str) -> None:
    text = (HERE / name / "model.py").read_text("ascii")
    assert black.format_str(text, mode=black.Mode(line_length=88)) == text


def test_every_folder_is_named() -> None:
    assert {path.parent.name for path in HERE.glob("*/model.onnx")} == set(BUILDERS)


def checked(*command: str) -> None:
    """Return nothing if a checker, run as a module at the root, has nothing to say."""
    if importlib.util.find_spec(command[0]) is None:
        pytest.skip(f"{command[0]} is of the extra dev and not installed")
    run = subprocess.run(
        [sys.executable, "-m", *command, *SOURCES],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_ruff_has_nothing_to_report() -> None:
    checked("ruff", "check", "--no-cache")


def test_mypy_has_nothing_to_report(mypy_cache: Path) -> None:
    checked("mypy", "--strict", "--cache-dir", str(mypy_cache))
