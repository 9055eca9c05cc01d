"""The command ``explain``."""

from __future__ import annotations

from dataclasses import asdict
from difflib import get_close_matches

import click

from burn_import.cli.explanations import EXPLANATIONS, explanations_of, text_of
from burn_import.cli.tables import format_option, show_json, show_table


@click.command("explain")
@click.argument("code", required=False)
@format_option
def explain_command(code: str | None, style: str) -> None:
    """Explain CODE, the word in `error[CODE]`, or an exit code.

    Without CODE all codes are listed.
    """
    chosen = list(EXPLANATIONS) if code is None else explanations_of(code)
    if not chosen:
        words = [e.code for e in EXPLANATIONS]
        near = get_close_matches(str(code), words, 1, 0.6)
        help_text = f"did you mean {near[0]}?" if near else f"codes: {', '.join(words)}"
        raise click.UsageError(f"there is no code {code!r}; {help_text}")
    if style == "json":
        show_json({"codes": [asdict(e) for e in chosen]})
    elif code is None:
        rows = [(e.code, e.exit_code, e.summary) for e in EXPLANATIONS]
        show_table(("code", "exit", "meaning"), rows)
    else:
        click.echo("\n\n".join(map(text_of, chosen)))
