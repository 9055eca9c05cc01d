"""Every skip has a row that says who runs the test."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import skips

ROOT = Path(__file__).parent.parent
LAWS = "tests/ir/test_laws.py::test_gradient[Round]"


def test_the_readme_has_the_table() -> None:
    text = (ROOT / "tests" / "README.md").read_text("utf-8")
    assert skips.table() in text


@pytest.mark.parametrize(
    ("path", "reason", "kind"),
    [
        ("tests/x.py", "could not import 'cupy': no module", "no CUDA device"),
        ("tests/x.py", "could not import 'torch': no module", "no PyTorch"),
        ("tests/x.py", "no models in zoo/ (see --zoo)", "no third-party models"),
        (
            "tests/x.py",
            "ruff is of the extra dev and not installed",
            "a tool is missing",
        ),
        (LAWS, "integers", "the case does not exist"),
        ("tests/x.py", "it fails on my machine", skips.UNEXPLAINED),
    ],
)
def test_a_skip_has_a_kind(path: str, reason: str, kind: str) -> None:
    assert skips.kind_of(path, reason) == kind


def test_a_skip_without_a_row_fails_the_run(tmp_path: Path) -> None:
    test = tmp_path / "test_it.py"
    test.write_text("import pytest\n\ndef test_it():\n    pytest.skip('no time')\n")
    options = ("-p", "tests.conftest", "-p", "no:cacheprovider", "-c", os.devnull)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            *options,
            "--rootdir",
            str(tmp_path),
            str(test),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert "unexplained skip: test_it.py::test_it: Skipped: no time" in done.stdout
