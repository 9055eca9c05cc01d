"""Rows of results: one for each exported file, stored as lines of JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

#: What a row can end with, in the order of the columns of the table.
OUTCOMES = (
    "right",
    "wrong",
    "internal error",
    "refused",
    "timeout",
    "invalid file",
    "exporter failed",
    "model failed",
    "library missing",
)
#: Outcomes of files that exist: the denominator of the share that is right.
IMPORTED = ("right", "wrong", "internal error", "refused", "timeout")


@dataclass
class Row:
    """The result of one architecture in one format.

    ``stage`` is the last stage that began. Errors are relative to the largest element
    of the reference; None was not measured. ``reference`` says which runtime the
    result was compared with, and ``reference_error`` how far that is from PyTorch.
    ``gradient_rounding`` is the error of PyTorch's gradients in float32, and
    ``gradient64_error`` that of the module in float64.
    """

    key: str
    library: str
    family: str
    name: str
    format: str
    outcome: str = ""
    stage: str = ""
    cause: str = ""
    opset: int = 0
    dynamic: bool = False
    reference: str = ""
    reference_error: float | None = None
    rounding: float | None = None
    error: float | None = None
    compiled_error: float | None = None
    second_error: float | None = None
    gradient: str = ""
    gradient_error: float | None = None
    gradient_count: int = 0
    gradient_rounding: float | None = None
    gradient64_error: float | None = None
    cuda: str = ""
    cuda_error: float | None = None
    cuda_gradient_error: float | None = None
    missing_keys: list[str] = field(default_factory=list)
    extra_keys: list[str] = field(default_factory=list)
    changed_keys: list[str] = field(default_factory=list)
    key_count: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the row as one line; infinities and NaN become strings."""
        values = {
            name: str(value) if _is_special(value) else value
            for name, value in asdict(self).items()
        }
        return json.dumps(values, allow_nan=False)


def _is_special(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def row_from_json(line: str) -> Row:
    """Return the row that ``to_json`` wrote; unknown fields are left out.

    Raises:
        ValueError: the line is no JSON object with the fields of a row.
    """
    values = json.loads(line)
    names = {f.name for f in fields(Row)}
    kept: dict[str, Any] = {}
    for name, value in values.items():
        if name in names:
            numeric = isinstance(value, str) and name.endswith("error")
            kept[name] = float(value) if numeric else value
    try:
        return Row(**kept)
    except TypeError as error:
        raise ValueError(f"expected a row of results: {error}") from error


def read_rows(paths: Iterable[Path]) -> list[Row]:
    """Return the rows of several files, the last one of each key.

    A line that was cut off when a run was killed is left out.
    """
    rows: dict[str, Row] = {}
    for path in paths:
        for line in _complete_lines(path):
            row = row_from_json(line)
            rows[row.key] = row
    return list(rows.values())


def _complete_lines(path: Path) -> Iterator[str]:
    if not path.exists():
        return
    for line in path.read_text("utf-8").splitlines(keepends=True):
        if line.endswith("\n") and line.strip():
            yield line


def trim_partial_line(path: Path) -> None:
    """Remove a last line without an end, which a killed run leaves behind."""
    if not path.exists():
        return
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    if end < len(data):
        path.write_bytes(data[:end])
