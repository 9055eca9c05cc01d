"""The coverage suite on two small programs, in all formats."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.wild.results import read_rows

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("torch", "onnxscript", "onnxruntime")

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(
        any(find_spec(name) is None for name in PACKAGES), reason="needs PyTorch"
    ),
]


def run_suite(*arguments: str) -> str:
    """Return what ``python -m tests.wild`` prints."""
    code = "import sys; sys.path[:0] = sys.argv.pop(1).split(','); import runpy; "
    code += "runpy.run_module('tests.wild', run_name='__main__', alter_sys=True)"
    folders = [ROOT, *(ROOT / name for name in ("importer", "ir", "templates"))]
    paths = ",".join(map(str, [*folders, ROOT / "runtime"]))
    done = subprocess.run(
        [sys.executable, "-c", code, paths, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_results_are_right_and_runs_resume(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    only = ["run", "--out", str(out), "--libraries", "research", "--only", "*/gat"]
    run_suite(*only, "--formats", "pt2")
    run_suite(*only, "--formats", "pt2,torchscript")
    rows = read_rows([out])
    assert {row.format: row.outcome for row in rows} == dict.fromkeys(
        ("pt2", "torchscript"), "right"
    )
    assert len(out.read_text("utf-8").splitlines()) == 2
    for row in rows:
        assert row.gradient == "right" and row.gradient_count == 3
        assert row.dynamic and row.second_error is not None
        assert not row.missing_keys and not row.changed_keys


def test_files_that_are_right_elsewhere_are_skipped(tmp_path: Path) -> None:
    before, out = tmp_path / "before.jsonl", tmp_path / "rows.jsonl"
    only = ["--libraries", "research", "--only", "*/gat", "--formats", "pt2"]
    run_suite("run", "--out", str(before), *only)
    text = run_suite("run", "--out", str(out), "--right-in", str(before), *only)
    assert "1 files, 1 of them finished before" in text
    assert not read_rows([out])


def test_a_file_that_takes_too_long_is_reported(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    only = ["run", "--out", str(out), "--libraries", "research", "--only", "*/gat"]
    run_suite(*only, "--formats", "pt2", "--timeout", "0")
    (row,) = read_rows([out])
    assert row.outcome in ("timeout", "model failed", "exporter failed")
    assert row.cause == "timeout"
