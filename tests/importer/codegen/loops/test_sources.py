"""Linters and type checkers accept the source of loops."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from tests.importer.codegen.loops import (
    test_bodies as test_loop_bodies,
    test_corners as test_loop_corners,
    test_loops,
    test_scans,
    test_sequences,
)
from tests.importer.looped import parsed
from tests.modules import generate

ROOT = Path(__file__).parents[4]
MODULES = (
    *(test_loop_bodies, test_loop_corners, test_loops),
    *(test_scans, test_sequences),
)
#: Models without weights.
TEXTS = {
    f"{module.__name__.rpartition('.test_')[2]}_{name.lower()}": text
    for module in MODULES
    for name, text in vars(module).items()
    if name.isupper()
    and isinstance(text, str)
    and name not in ("LAYERS", "OUTSIDE", "SCOPES")
}
OPSETS = {"loops_old": 11, "scans_batched": 8}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the paths of the generated modules."""
    paths = []
    for name, text in TEXTS.items():
        folder = tmp_path_factory.mktemp(name)
        text = text.replace("LENGTHS", "int64[b] sizes, ").replace("GIVEN", "sizes")
        onnx.save(parsed(text, opset=OPSETS.get(name, 18)), folder / "model.onnx")
        module, _ = generate(folder / "model.onnx", folder)
        paths.append(str(module.rename(module.with_name(f"{name}.py"))))
    return paths


@pytest.mark.parametrize("command", [("ruff", "check", "--no-cache"), ("mypy",)])
@pytest.mark.thorough
def test_checkers_have_nothing_to_report(
    command: tuple[str, ...], sources: list[str], mypy_cache: Path
) -> None:
    if importlib.util.find_spec(command[0]) is None:
        pytest.skip(f"{command[0]} is of the extra dev and not installed")
    cache = ("--strict", "--cache-dir", str(mypy_cache))
    strict = cache if command == ("mypy",) else ()
    config = ("--config", "pyproject.toml") if command[0] == "ruff" else ()
    run = subprocess.run(
        [sys.executable, "-m", *command, *config, *strict, *sources],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
