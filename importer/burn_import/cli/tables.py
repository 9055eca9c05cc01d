"""Tables as aligned text or JSON."""

import json
from collections.abc import Sequence
from typing import Any

import click

from burn_import.cli.report import SCHEMA, clean

#: The output-format option of commands that print a table. ``github`` prints the same
#: table; errors, and rows that fail a check, are annotations.
format_option = click.option(
    "--format", "style", type=click.Choice(["text", "json", "github"]), default="text"
)
force_option = click.option("--force", is_flag=True, help="Replace an existing file.")
output_option = click.option("-o", "--output", type=click.Path(), required=True)


def sizes_of(ctx: Any, param: Any, texts: tuple[str, ...]) -> dict[str, int]:
    """Parse ``--size NAME=NUMBER`` options to sizes of dimensions by name."""
    sizes = {}
    for text in texts:
        name, _, number = text.partition("=")
        if not name or not number.isdigit():
            raise click.BadParameter(f"expected NAME=NUMBER, got {text!r}", ctx, param)
        sizes[name] = int(number)
    return sizes


def show_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print columns as wide as their widest cell."""
    cells = [[clean(str(cell)) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    for row in cells:
        pairs = zip(row, widths, strict=True)
        click.echo("  ".join(f"{cell:{width}}" for cell, width in pairs).rstrip())


def show_json(data: dict[str, Any], **more: Any) -> None:
    """Print ``data`` together with its schema version."""
    click.echo(json.dumps({"schema": SCHEMA, **data, **more}))
