"""Examples as modules that write into a folder of the test."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.test_house import ROOT


@pytest.fixture
def example(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Return the program of an example, which writes into ``tmp_path``."""
    path = ROOT / "examples" / request.param / "run.py"
    spec = importlib.util.spec_from_file_location(f"{request.param}_example", path)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    monkeypatch.setattr(program, "OUT", tmp_path, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    return program
