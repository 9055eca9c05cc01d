"""The table of results, and the page ``docs/coverage.md``."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from tests.wild.entry import FORMATS
from tests.wild.results import IMPORTED, OUTCOMES, Row

CAUSE_LENGTH = 200
_PATH = re.compile(r"(?<![\w.])/(?:[\w.+-]+/)+(?=[\w.+-])")
#: What a cell of the page says for each outcome.
CELLS = {
    "right": "right",
    "wrong": "**wrong**",
    "internal error": "**error**",
    "refused": "refused",
    "timeout": "**timeout**",
    "invalid file": "invalid",
    "exporter failed": "no file",
    "model failed": "not run",
    "library missing": "no library",
}
#: What begins the note of gradients that the exporter changed.
EXPORTER = ("folded", "detached", "changed")
INTRODUCTION = """\
# Coverage

This page lists which public architectures burn-import was tried with, and the result
for each file format. `python -m tests.wild` writes it: the suite builds each
architecture with random weights, exports it, imports the file, and compares eager and
compiled calls with onnxruntime or PyTorch at two sizes, and gradients with PyTorch.

| in a cell | meaning |
|---|---|
| right | eager and compiled outputs agree to 1e-4, or as far as rounding allows |
| right, g | outputs agree, but the gradient of some parameter differs |
| right, f | as above, because the exporter stored what it computed from a parameter, |
|  | or the file does not say where gradients stop, or computes something else |
| refused | the import stops with a message; see [Misses](#misses) |
| **wrong**, **error**, **timeout** | a defect of burn-import |
| invalid | the exporter wrote a file that onnxruntime refuses, as burn-import does |
| no file | the exporter of PyTorch fails |
| not run | PyTorch or the library fails, or the model draws random numbers |
| no library | the model needs a package that is not installed |
"""


def count_outcomes(rows: Iterable[Row]) -> dict[tuple[str, str], Counter[str]]:
    """Return the number of rows with each outcome, by library and format."""
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts[row.library, row.format][row.outcome] += 1
    return dict(counts)


def right_share(counts: Mapping[str, int]) -> str:
    """Return how many exported files are right, as ``3 of 4 (75.0 %)``."""
    total = sum(counts.get(outcome, 0) for outcome in IMPORTED)
    right = counts.get("right", 0)
    return f"{right} of {total} ({100 * right / total:.1f} %)" if total else "-"


def gradient_share(rows: Sequence[Row]) -> str:
    """Return how many of the files with compared gradients have right ones."""
    compared = [
        row
        for row in rows
        if row.gradient not in ("", "none") and not row.gradient.startswith(EXPORTER)
    ]
    right = sum(row.gradient == "right" for row in compared)
    share = f" ({100 * right / len(compared):.1f} %)" if compared else ""
    return f"{right} of {len(compared)}{share}" if compared else "-"


def summary_text(rows: Sequence[Row]) -> str:
    """Return the table of outcomes and the most frequent causes, for a terminal."""
    lines = [f"{'library':14}{'format':18}{'right':>22}  other outcomes"]
    for (library, name), counts in sorted(count_outcomes(rows).items()):
        others = [f"{o}: {counts[o]}" for o in OUTCOMES[1:] if counts[o]]
        share = right_share(counts)
        lines.append(f"{library:14}{name:18}{share:>22}  {', '.join(others)}")
    total = Counter(row.outcome for row in rows)
    architectures = len({(row.library, row.name) for row in rows})
    lines.append(f"{architectures} architectures, {right_share(total)} files right")
    lines.append(f"gradients right: {gradient_share(rows)}")
    for outcome in OUTCOMES[1:]:
        lines += _frequent_causes(rows, outcome)
    return "\n".join(lines)


def _frequent_causes(rows: Sequence[Row], outcome: str) -> list[str]:
    causes: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row.outcome == outcome:
            causes[f"{row.stage}: {group_cause(row.cause)}"].append(row.key)
    ordered = sorted(causes.items(), key=lambda item: (-len(item[1]), item[0]))
    lines = [f"\n{outcome}:"] if ordered else []
    for cause, keys in ordered[:30]:
        lines.append(f"  {len(keys):4} {cause}\n       {', '.join(sorted(keys)[:4])}")
    return lines


def group_cause(cause: str) -> str:
    """Return the first line of a cause with names and numbers left out."""
    first = clean_cause(cause)
    first = re.sub(r"'[^']*'", "'..'", first)
    return re.sub(r"\d+(\.\d+)?(e[-+]?\d+)?", "N", first)[:CAUSE_LENGTH]


def clean_cause(cause: str) -> str:
    """Return the first line of a cause, without folders, shortened."""
    first = cause.strip().splitlines()[0] if cause.strip() else ""
    return _PATH.sub("", first)[:CAUSE_LENGTH]


def coverage_page(rows: Sequence[Row]) -> str:
    """Return the text of ``docs/coverage.md``."""
    parts = [INTRODUCTION, versions_line(rows), _summary(rows)]
    for library in sorted({row.library for row in rows}):
        parts.append(_library(library, [row for row in rows if row.library == library]))
    parts.append(_misses(rows))
    return "\n".join(parts).rstrip() + "\n"


def versions_line(rows: Sequence[Row]) -> str:
    used: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for name, number in row.versions.items():
            used[name].update(number.split(", "))
    named = [f"{name} {', '.join(sorted(used[name]))}" for name in used]
    return f"Versions: {'; '.join(named)}.\n" if named else ""


def _summary(rows: Sequence[Row]) -> str:
    lines = ["## Summary", "", "Files that are right, of those that were exported:", ""]
    lines += table_header(["library", "architectures", *FORMATS, "gradients"])
    counts = count_outcomes(rows)
    for library in sorted({row.library for row in rows}):
        own = [row for row in rows if row.library == library]
        shares = [right_share(counts.get((library, name), {})) for name in FORMATS]
        number = str(len({row.name for row in own}))
        lines.append(table_row([library, number, *shares, gradient_share(own)]))
    return "\n".join(lines) + "\n"


def _library(library: str, rows: Sequence[Row]) -> str:
    """Return one line for each family, with architectures of equal cells joined."""
    by_name: dict[tuple[str, str], dict[str, Row]] = defaultdict(dict)
    for row in rows:
        by_name[row.family, row.name][row.format] = row
    joined: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (family, name), formats in sorted(by_name.items()):
        cells = tuple(_cell(formats.get(f)) for f in FORMATS)
        joined[family, cells].append(name)
    lines = [f"## {library}", "", *table_header(["family", "architectures", *FORMATS])]
    for (family, cells), names in joined.items():
        lines.append(table_row([family, ", ".join(names), *cells]))
    return "\n".join(lines) + "\n"


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    mark = ""
    if row.outcome == "right" and row.gradient not in ("", "none", "right"):
        mark = ", f" if row.gradient.startswith(EXPORTER) else ", g"
    return CELLS[row.outcome] + mark


def _misses(rows: Sequence[Row]) -> str:
    """Return every file that was exported and is not right, with the cause."""
    lines = ["## Misses", "", *table_header(["file", "outcome", "cause"])]
    for row in sorted(rows, key=lambda row: row.key):
        if row.outcome in IMPORTED and row.outcome != "right":
            lines.append(table_row([row.key, row.outcome, clean_cause(row.cause)]))
    lines += ["", "Files that onnxruntime refuses as well:", ""]
    lines += table_header(["file", "cause"])
    for row in sorted(rows, key=lambda row: row.key):
        if row.outcome == "invalid file":
            lines.append(table_row([row.key, clean_cause(row.cause)]))
    lines += [
        "",
        "Gradients that differ:",
        "",
        *table_header(["file", "error", "cause"]),
    ]
    for row in sorted(rows, key=lambda row: row.key):
        if row.outcome == "right" and row.gradient not in ("", "none", "right"):
            error = "" if row.gradient_error is None else f"{row.gradient_error:.2g}"
            lines.append(table_row([row.key, error, clean_cause(row.gradient)]))
    return "\n".join(lines) + "\n"


def table_header(names: Sequence[str]) -> list[str]:
    return [table_row(names), "|" + "---|" * len(names)]


def table_row(values: Sequence[str]) -> str:
    return "| " + " | ".join(value.replace("|", "\\|") for value in values) + " |"
