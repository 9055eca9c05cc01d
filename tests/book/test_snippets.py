"""Every block of Python, TOML and shell commands in the pages is executed.

What is not has a row in ``tests/book/reasons.py``.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.book.blocks import Unit, units
from tests.book.reasons import reason_against, unused
from tests.test_house import ROOT, tracked

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in tracked("*.md"))
UNITS = {page: units(ROOT, page) for page in PAGES}
EXECUTED = {
    page: sum(reason_against(unit) is None for unit in found)
    for page, found in UNITS.items()
}


@pytest.mark.parametrize("page", [page for page in PAGES if EXECUTED[page]])
@pytest.mark.sampled(3)
def test_code_of_the_page_runs(page: str, tmp_path: Path) -> None:
    paths = os.pathsep.join([*sys.path, str(ROOT)])
    answer = subprocess.run(
        [sys.executable, "-m", "tests.book.run", page],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stderr + answer.stdout
    assert answer.stdout.endswith(f"{EXECUTED[page]} executed\n")


def test_every_reason_speaks_of_code() -> None:
    assert unused([unit for found in UNITS.values() for unit in found]) == []


def test_commands_are_units() -> None:
    found = units(ROOT, "docs/torch-target.md")
    assert found[0][2:] == (
        "console",
        "burn-import net.onnx --target torch -o app/net.py\n",
    )
    assert reason_against(Unit("a.md", 1, "sh", "python -m pytest -n 2"))
