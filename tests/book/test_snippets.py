"""Every block of Python, TOML and shell commands in the pages is executed.

What is not has a row in ``tests/book/reasons.py``.
"""

from pathlib import Path

import pytest

from tests.book.blocks import Unit, units
from tests.book.reasons import reason_against, unused
from tests.book.run import main as run_page
from tests.forked import run_forked
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
    ended = run_forked(run_page, page, folder=tmp_path, timeout=300)
    assert ended.code == 0, ended.output
    assert ended.output.endswith(f"{EXECUTED[page]} executed\n")


def test_every_reason_speaks_of_code() -> None:
    assert unused([unit for found in UNITS.values() for unit in found]) == []


def test_commands_are_units() -> None:
    found = units(ROOT, "docs/torch-target.md")
    assert found[0][2:] == (
        "console",
        "burn-import net.onnx --target torch -o app/net.py\n",
    )
    assert reason_against(Unit("a.md", 1, "sh", "python -m pytest -n 2"))
