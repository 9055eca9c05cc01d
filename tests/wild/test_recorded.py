"""The recorded results and the page that is written from them."""

from pathlib import Path

import pytest

from tests.wild.__main__ import main
from tests.wild.recorded import (
    COLUMNS,
    ENVIRONMENTS,
    TABLE,
    merge_rows,
    read_recorded,
    write_recorded,
)
from tests.wild.results import Row
from tests.wild.table import coverage_page

ROOT = Path(__file__).parent.parent.parent
OLD, NEW = {"python": "3.11, 3.12", "torch": "2.0"}, {"python": "3.11", "torch": "2.1"}


def row(name: str, outcome: str, versions: dict[str, str], **more: object) -> Row:
    """Return a row of the library ``lib``."""
    result = Row(f"lib/{name}:pt2", "lib", "nets", name, "pt2", outcome)
    for field, value in {"versions": versions, **more}.items():
        setattr(result, field, value)
    return result


ROWS = [
    row("fine", "right", OLD, gradient="right", gradient_error=1e-7),
    row("odd", "refused", OLD, cause="UnsupportedModel: no, such | operator\nmore"),
    row("steep", "right", OLD, gradient="wrong: w", gradient_error=0.514),
    row("lost", "exporter failed", OLD, cause="RuntimeError: not shown"),
]


def test_the_page_of_the_project_is_that_of_its_recorded_results() -> None:
    rows = read_recorded(ROOT / "tests" / "wild")
    page = (ROOT / "docs" / "coverage.md").read_text("utf-8")
    assert len(rows) > 1000
    assert coverage_page(rows) == page


def test_recorded_rows_give_the_page_of_the_rows(tmp_path: Path) -> None:
    write_recorded(tmp_path, ROWS)
    rows = read_recorded(tmp_path)
    assert coverage_page(rows) == coverage_page(ROWS)
    before = (tmp_path / TABLE).read_bytes(), (tmp_path / ENVIRONMENTS).read_bytes()
    write_recorded(tmp_path, rows[::-1])
    after = (tmp_path / TABLE).read_bytes(), (tmp_path / ENVIRONMENTS).read_bytes()
    assert after == before


def test_a_run_changes_the_lines_of_its_own_files(tmp_path: Path) -> None:
    write_recorded(tmp_path, ROWS)
    before = (tmp_path / TABLE).read_text("utf-8").splitlines()
    results, page = tmp_path / "rows.jsonl", tmp_path / "page.md"
    new = [row("odd", "right", NEW, gradient="none"), row("more", "wrong", NEW)]
    results.write_text("".join(r.to_json() + "\n" for r in new), "utf-8")
    options = ["--recorded", str(tmp_path), "--page", str(page)]
    main(["table", str(results), *options])
    after = (tmp_path / TABLE).read_text("utf-8").splitlines()
    assert set(after) - set(before) == {
        "lib/odd:pt2,nets,right,none,,,2",
        "lib/more:pt2,nets,wrong,,,,2",
    }
    assert {line.partition(",")[0] for line in set(before) - set(after)} == {
        "lib/odd:pt2"
    }
    text = page.read_text("utf-8")
    assert "Versions: python 3.11, 3.12; torch 2.0, 2.1." in text
    main(["table", *options])
    assert page.read_text("utf-8") == text


def test_nothing_is_recorded_where_nothing_is_written(tmp_path: Path) -> None:
    results = tmp_path / "rows.jsonl"
    results.write_text(ROWS[0].to_json() + "\n", "utf-8")
    main(["table", str(results), "--recorded", str(tmp_path), "--no-page"])
    assert not (tmp_path / TABLE).exists()


def test_environments_without_rows_are_removed(tmp_path: Path) -> None:
    write_recorded(tmp_path, ROWS)
    newer = [row(r.name, r.outcome, NEW, gradient=r.gradient) for r in ROWS]
    write_recorded(tmp_path, merge_rows(ROWS, newer))
    assert all(r.versions == NEW for r in read_recorded(tmp_path))
    assert list(read_recorded(tmp_path)[0].versions) == ["python", "torch"]
    assert '"1"' not in (tmp_path / ENVIRONMENTS).read_text("utf-8")


@pytest.mark.parametrize(
    "line",
    ["lib/a:pt2,nets,right", "lib/a:pt2,nets,good,,,,1", "lib/a:pt2,nets,right,,,,7"],
    ids=["columns", "outcome", "environment"],
)
def test_other_lines_are_refused(tmp_path: Path, line: str) -> None:
    write_recorded(tmp_path, ROWS)
    (tmp_path / TABLE).write_text(f"{','.join(COLUMNS)}\n{line}\n", "utf-8")
    with pytest.raises(ValueError, match=r"results\.csv, line 2: expected"):
        read_recorded(tmp_path)
