"""Generated modules of PyTorch that are committed, compared as text and executed.

Only the tests marked ``torch`` need PyTorch.
"""

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import black
import numpy as np
import pytest

from burn_import.pipeline import Compiled, import_model, write_model
from tests.golden.test_golden import HERE, OPTIONS, cases, source
from tests.modules import assert_close, import_file

NAMES = ("embedding", "lstm", "loops", "residual", "transformer")
TORCH = replace(OPTIONS, target="torch")

each = pytest.mark.parametrize("name", NAMES)


def compiled(name: str) -> Compiled:
    """Return the PyTorch module of a golden model."""
    return import_model(HERE / name / "model.onnx", TORCH)


@each
def test_the_source_is_the_committed_one(
    name: str, request: pytest.FixtureRequest
) -> None:
    path = HERE / name / "torch_model.py"
    text = source(compiled(name))
    is_stale = not path.exists() or path.read_text("ascii") != text
    if is_stale and request.config.getoption("--update-golden"):
        path.write_text(text, "ascii")
    assert path.read_text("ascii") == text


@each
def test_black_has_nothing_to_change(name: str) -> None:
    text = (HERE / name / "torch_model.py").read_text("ascii")
    assert black.format_str(text, mode=black.Mode(line_length=88)) == text


@pytest.mark.torch
def test_mypy_has_nothing_to_report(tmp_path: Path) -> None:
    """Not strictly: a call of any module of PyTorch returns ``Any``."""
    pytest.importorskip("torch")
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is of the extra dev and not installed")
    sources = [str(HERE / name / "torch_model.py") for name in NAMES]
    for source_path in sources:
        command = [sys.executable, "-m", "mypy", "--config-file", "", source_path]
        command += ["--cache-dir", str(tmp_path), "--follow-imports", "silent"]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.torch
@each
def test_the_committed_source_agrees_with_onnxruntime(
    name: str, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    weights = write_model(compiled(name), tmp_path / "model.py").weights
    model = import_file(HERE / name / "torch_model.py").Net.load(weights)
    for inputs, expected in cases(name):
        given = [torch.from_numpy(np.array(x)) for x in inputs if x is not None]
        with torch.no_grad():
            result = model(*given)
        results = result if isinstance(result, tuple) else (result,)
        arrays = [x.numpy() for x in results]
        assert_close(arrays, expected, rtol=1e-4, atol=1e-5)
