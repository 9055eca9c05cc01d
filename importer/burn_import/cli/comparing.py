"""The command ``diff``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from burn_import.cli.error_reports import Answer
from burn_import.cli.report import Report, annotation, clean
from burn_import.cli.tables import format_option, show_json, show_table

if TYPE_CHECKING:
    from burn_import.comparison.contents import Contents
    from burn_import.comparison.differences import (
        Comparison,
        Difference,
        ValueDifference,
    )

#: Maximum number of printed table rows, and of characters in a cell.
_MOST_ROWS, _MOST_CHARACTERS = 100, 60


@click.command("diff")
@click.argument("first", metavar="A", type=click.Path(path_type=Path))
@click.argument("second", metavar="B", type=click.Path(path_type=Path))
@format_option
@click.pass_context
def diff_command(ctx: click.Context, /, first: Path, second: Path, style: str) -> None:
    """Compare the models A and B: structure, inputs and outputs, weights.

    Each is a model, a record, a checkpoint, or a module that burn-import wrote, which
    is executed. Parts that only one kind of file has are not compared.

    Exits with 1 if they differ, as diff(1) does.
    """
    with Answer(Report(style, str(first)), False) as answer:
        from burn_import.comparison.differences import compare

        old = _contents(first)
        answer.report = Report(style, str(second))
        new = _contents(second)
        result = compare(old, new)
        _show(result, style, (str(first), str(second)))
        answer.code = 0 if result.is_equal else 1
    ctx.exit(answer.code)


def _contents(path: Path) -> Contents:
    from burn_import.comparison.contents import file_contents, module_contents

    if path.suffix != ".py":
        return file_contents(path)
    from burn_import.cli.modules import load_module

    return module_contents(load_module(path))


def _show(result: Comparison, style: str, names: tuple[str, str]) -> None:
    if style == "json":
        rows = [{**asdict(row), "change": row.change} for row in result.differences]
        values = [_as_data(value) for value in result.values]
        about = dict(zip("ab", names, strict=True))
        show_json({**about, "equal": result.is_equal}, differences=rows, values=values)
    elif style == "github" and not result.is_equal:
        for message in _messages(result):
            click.echo(annotation("warning", names[1], message))
    else:
        _show_tables(result)


def _as_data(value: ValueDifference) -> dict[str, Any]:
    """Return a row for JSON, with null for infinity."""
    return {
        key: None if isinstance(item, float) and not math.isfinite(item) else item
        for key, item in asdict(value).items()
    }


def _messages(result: Comparison) -> Iterator[str]:
    for row in result.differences:
        types = " -> ".join(filter(None, (row.before, row.after)))
        yield f"{row.part} {row.name} {row.change}: {types}"
    for value in result.values:
        absolute, relative = _number(value.absolute), _number(value.relative)
        yield (
            f"weight {value.key}: {value.different} of {value.elements} elements"
            f" differ, by at most {absolute} (relative {relative})"
        )


def _show_tables(result: Comparison) -> None:
    if result.differences:
        cells = [_cells(row) for row in result.differences]
        _show_bounded(("part", "name", "change", "A", "B"), cells)
    if result.values:
        numbers = [
            (v.key, v.elements, v.different, _number(v.absolute), _number(v.relative))
            for v in result.values
        ]
        _show_bounded(("weight", "elements", "differ", "largest", "relative"), numbers)
    if result.is_equal:
        click.echo(f"equal: {result.weights} tensors")
    else:
        count = len(result.differences)
        click.echo(
            f"{count} differences; {len(result.values)} tensors with other values"
        )


def _show_bounded(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    show_table(header, rows[:_MOST_ROWS])
    if len(rows) > _MOST_ROWS:
        click.echo(f"and {len(rows) - _MOST_ROWS} more")


def _cells(row: Difference) -> tuple[str, ...]:
    sides = (_shortened(clean(side)) or "-" for side in (row.before, row.after))
    return (row.part, row.name, row.change, *sides)


def _shortened(text: str) -> str:
    is_short = len(text) <= _MOST_CHARACTERS
    return text if is_short else f"{text[: _MOST_CHARACTERS - 3]}..."


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}"
