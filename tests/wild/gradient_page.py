"""The page ``docs/gradients.md``, from the rows of a run of ``gradients``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from tests.wild.compare import TOLERANCE
from tests.wild.gradients import FORMATS
from tests.wild.results import Row
from tests.wild.table import clean_cause, table_header, table_row, versions_line

#: How many keys of parameters are listed for a file.
LISTED = 4
INTRODUCTION = """\
# Gradients against PyTorch

This page compares the gradients of imported modules with PyTorch's in float64.
`python -m tests.wild gradients --out rows.jsonl --page docs/gradients.md` exports each
architecture of `tests/wild/gradients.py` with random weights in three formats, imports
the file, differentiates one scalar of all outputs, and writes this page. It needs
torch, transformers, onnx and onnxscript, and takes about half an hour.

Errors are largest differences of a parameter's gradient relative to its largest
element, of the worst parameter. A gradient below 1e-3 of the largest one in the model
is measured against that: the bias of attention's keys, for example, has a gradient of
0 and rounding alone. A cell has the error in float32 and that of the same file imported
with `--dtype float64`. The last column is PyTorch's own error in float32.
"""


def gradient_page(rows: Sequence[Row]) -> str:
    """Return the text of ``docs/gradients.md``."""
    compared = [row for row in rows if row.gradient_error is not None]
    names = sorted({(row.library, row.name) for row in compared})
    by_file = {(row.library, row.name, row.format): row for row in rows}
    lines = [INTRODUCTION, versions_line(rows), _summary(compared), ""]
    lines += table_header(["model", "parameters", *FORMATS, "PyTorch in float32"])
    for library, name in names:
        files = {f: by_file.get((library, name, f)) for f in FORMATS}
        lines.append(_model_line(f"{library}/{name}", files))
    lines += ["", *_changed_section(compared), *_other_section(rows)]
    return "\n".join(lines).rstrip() + "\n"


def _summary(rows: Sequence[Row]) -> str:
    """Return how many files are within the tolerance, by format."""
    texts = []
    for name in FORMATS:
        own = [row for row in rows if row.format == name]
        count = sum((row.gradient_error or 0.0) <= TOLERANCE for row in own)
        exact = sum((row.gradient64_error or 0.0) <= TOLERANCE for row in own)
        texts.append(f"{name}: {count} of {len(own)} in float32, {exact} in float64")
    return f"Files within {TOLERANCE:g}: " + "; ".join(texts) + "."


def _model_line(name: str, files: Mapping[str, Row | None]) -> str:
    compared = [row for row in files.values() if row and row.gradient_error is not None]
    count = max(row.gradient_count for row in compared)
    rounding = max(row.gradient_rounding or 0.0 for row in compared)
    cells = [_cell(row) for row in files.values()]
    return table_row([name, str(count), *cells, f"{rounding:.0e}"])


def _cell(row: Row | None) -> str:
    if row is None or row.gradient_error is None:
        return "no file" if row and row.outcome == "exporter failed" else ""
    text = f"{row.gradient_error:.0e}, {row.gradient64_error or 0.0:.0e}"
    return f"{text} (f)" if _folded_keys(row) else text


def _folded_keys(row: Row) -> list[str]:
    return sorted({*row.missing_keys, *row.changed_keys})


def _changed_section(rows: Sequence[Row]) -> list[str]:
    """Return the parameters that exporters folded into others, and explanations."""
    by_keys: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for row in rows:
        if folded := tuple(_folded_keys(row)):
            by_keys[f"{row.library}/{row.name}", folded].append(row.format)
    lines = ["## Parameters that the exporter folded", ""]
    lines += [
        "Files marked (f) do not store these, or only multiplied with others.",
        "",
    ]
    lines += table_header(["model", "files", "parameters"])
    for (name, keys), formats in sorted(by_keys.items()):
        more = f" and {len(keys) - LISTED} more" if len(keys) > LISTED else ""
        text = ", ".join(f"`{key}`" for key in keys[:LISTED]) + more
        lines.append(table_row([name, ", ".join(sorted(formats)), text]))
    return [*lines, ""]


def _other_section(rows: Sequence[Row]) -> list[str]:
    """Return the files above the tolerance and those without gradients, with causes."""
    lines = ["## Files above the tolerance or without a comparison", ""]
    lines += table_header(["file", "reason"])
    for row in sorted(rows, key=lambda row: row.key):
        error = max(row.gradient_error or 0.0, row.gradient64_error or 0.0)
        if row.outcome == "right" and row.gradient_error is not None:
            if error <= TOLERANCE:
                continue
            reason = row.gradient if row.gradient != "right" else "rounding"
        else:
            reason = f"{row.outcome}: {clean_cause(row.cause or row.gradient)}"
        lines.append(table_row([row.key, reason]))
    return lines
