"""The recorded results, from which ``docs/coverage.md`` is generated.

``results.csv`` has one line for each file that was tried, sorted, with what the page
shows of it. ``environments.json`` has the versions of packages that the lines refer to
by number. A run replaces the lines of the files that it examined, and no others.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.wild.results import IMPORTED, OUTCOMES, Row
from tests.wild.table import clean_cause

TABLE = "results.csv"
ENVIRONMENTS = "environments.json"
COLUMNS = (
    *("file", "family", "outcome", "gradient", "gradient_error", "cause"),
    "environment",
)
#: Outcomes whose causes the page lists.
LISTED = (*IMPORTED, "invalid file")


def read_recorded(folder: Path) -> list[Row]:
    """Return the recorded rows of ``folder``; none if nothing is recorded there.

    Raises:
        ValueError: a line has another number of columns, an unknown outcome or an
            unknown environment.
    """
    path = folder / TABLE
    if not path.exists():
        return []
    environments = json.loads((folder / ENVIRONMENTS).read_text("utf-8"))
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file))
    return [
        _row(number, line, environments) for number, line in enumerate(lines[1:], 2)
    ]


def _row(
    number: int, line: Sequence[str], environments: Mapping[str, dict[str, str]]
) -> Row:
    if len(line) != len(COLUMNS):
        raise ValueError(
            f"{TABLE}, line {number}: expected {len(COLUMNS)} columns, got {len(line)}"
        )
    key, family, outcome, gradient, error, cause, environment = line
    if outcome not in OUTCOMES or environment not in environments:
        raise ValueError(
            f"{TABLE}, line {number}: expected a known outcome and environment, "
            f"got {outcome!r} and {environment!r}"
        )
    architecture, _, format_ = key.rpartition(":")
    library, _, name = architecture.partition("/")
    row = Row(key, library, family, name, format_, outcome)
    row.gradient, row.cause = gradient, cause
    row.gradient_error = float(error) if error else None
    row.versions = dict(environments[environment])
    return row


def merge_rows(recorded: Iterable[Row], new: Iterable[Row]) -> list[Row]:
    """Return the recorded rows with those of ``new`` in place of their keys'."""
    rows = {row.key: row for row in recorded}
    rows.update({row.key: row for row in new})
    return [rows[key] for key in sorted(rows)]


def write_recorded(folder: Path, rows: Sequence[Row]) -> None:
    """Write ``rows`` into ``folder``, in place of what is recorded there.

    An environment keeps its number; those that no row has any more are removed.
    """
    numbers = _environment_numbers(folder, rows)
    with (folder / TABLE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in sorted(rows, key=lambda row: row.key):
            writer.writerow(_cells(row, numbers[_identity(row.versions)]))
    environments = {str(k): json.loads(text) for text, k in numbers.items()}
    text = json.dumps(environments, indent=1)
    (folder / ENVIRONMENTS).write_text(text + "\n", "utf-8")


def _environment_numbers(folder: Path, rows: Iterable[Row]) -> dict[str, int]:
    """Return the number of each environment of ``rows``, by its identity."""
    path = folder / ENVIRONMENTS
    recorded = json.loads(path.read_text("utf-8")) if path.exists() else {}
    used = {_identity(row.versions) for row in rows}
    numbers = {_identity(value): int(key) for key, value in recorded.items()}
    for identity in sorted(used - numbers.keys()):
        numbers[identity] = max(numbers.values(), default=0) + 1
    return {identity: k for identity, k in numbers.items() if identity in used}


def _identity(versions: Mapping[str, str]) -> str:
    return json.dumps(dict(versions))


def _cells(row: Row, environment: int) -> list[str]:
    """Return the columns of a row; causes of files that no page lists are left out."""
    is_listed = row.outcome in LISTED and row.outcome != "right"
    is_different = row.gradient not in ("", "none", "right")
    error = row.gradient_error if is_different else None
    return [
        *(row.key, row.family, row.outcome, clean_cause(row.gradient)),
        "" if error is None else f"{error:.2g}",
        clean_cause(row.cause) if is_listed else "",
        str(environment),
    ]
