"""Output of the command: results to stdout, messages to stderr.

Names in a model file may contain terminal escapes, right-to-left text, or commands to a
build server. All output passes through ``clean``.
"""

from __future__ import annotations

import errno
import os
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from burn_import.diff import Changes
    from burn_import.output import Written
    from burn_import.weights import Converted
    from burn_ir import Problem

#: Schema version of the printed JSON.
SCHEMA = 1

KINDS = {2: "refused", 3: "unreadable", 4: "unsupported", 5: "invalid"}
HINTS = {
    2: "--force replaces it, or name another output with -o",
    5: "the file contradicts itself or ONNX: export it again, with a newer exporter "
    "if there is one",
}
_MOST_SHOWN = 100
#: Colors of the lines of a diff, by first character.
_DIFF = {"+": "green", "-": "red", "@": "cyan"}


def colored(text: str, color: str | None, *, bold: bool = False) -> str:
    """Return ``text`` in a color; ``click.echo`` drops it where none is wanted."""
    return text if color is None else click.style(text, fg=color, bold=bold or None)


def clean(text: str) -> str:
    """Return ``text`` on one line, with all non-printable characters escaped."""
    shown = "".join(char if _is_plain(char) else _escaped(char) for char in text)
    return shown.replace("##[", "# #[")  # the older syntax of GitHub workflow commands


def _is_plain(char: str) -> bool:
    return char == " " or unicodedata.category(char)[0] not in "CZ"


def _escaped(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")


def annotation(level: str, title: str, message: str) -> str:
    """Return a GitHub workflow command that shows ``message`` at ``level``."""
    text = clean(message).replace("%", "%25")
    title = clean(title).replace("%", "%25")
    title = title.replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={title}::{text}"


def _json_line(data: dict[str, object]) -> str:
    import json

    return json.dumps(data)


def _word(changed: bool, dry_run: bool) -> str:
    if not changed:
        return "unchanged"
    return "would write" if dry_run else "wrote"


def _table_lines(done: Converted) -> Iterator[str]:
    """Yield the lines of a table of tensors and of the skipped entries."""
    rows = [
        (
            clean(row.name),
            " x ".join(map(str, row.shape)) or "scalar",
            row.dtype,
            str(row.size),
        )
        for row in done.rows[:_MOST_SHOWN]
    ]
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(4)]
    for name, shape, dtype, size in rows:
        yield (
            f"{name:{widths[0]}}  {shape:{widths[1]}}  {dtype:{widths[2]}}"
            f"  {size:>{widths[3]}} bytes"
        )
    if len(done.rows) > _MOST_SHOWN:
        yield f"and {len(done.rows) - _MOST_SHOWN} more"
    for name, reason in list(done.skipped.items())[:_MOST_SHOWN]:
        yield f"skipped {clean(name)}: {clean(reason)}"
    if len(done.skipped) > _MOST_SHOWN:
        yield f"and {len(done.skipped) - _MOST_SHOWN} more"
    yield f"{len(done.rows)} tensors, {done.size} bytes, of a {clean(done.source)}"


def _diff_lines(changes: Changes) -> Iterator[str]:
    """Yield the lines of a diff and a table of the changed weights."""
    yield from (colored(clean(line), _DIFF.get(line[:1])) for line in changes.lines)
    shown = changes.weights[:_MOST_SHOWN]
    width = max((len(clean(weight.name)) for weight in shown), default=0)
    for weight in shown:
        types = " -> ".join(dict.fromkeys(filter(None, (weight.before, weight.after))))
        word = "added" if not weight.before else "removed"
        word = "changed" if weight.before and weight.after else word
        yield f"{word:7}  {clean(weight.name):{width}}  {types}"
    if len(changes.weights) > _MOST_SHOWN:
        yield f"and {len(changes.weights) - _MOST_SHOWN} more weights"


def _as_data(changes: Changes | None) -> dict[str, object]:
    """Return changes as JSON-compatible data."""
    if changes is None:
        return {}
    rows = [asdict(weight) for weight in changes.weights]
    return {"diff": list(changes.lines), "changed_weights": rows}


def _system_message(error: OSError) -> str:
    """Return the system's error message with the file it refers to."""
    if error.strerror is None or error.filename is None:
        return str(error)
    path = Path(os.fsdecode(error.filename))
    is_absent = error.errno == errno.ENOENT and path.parent.is_dir()
    verb = "open" if is_absent else "write to"
    return f"cannot {verb} {str(path)!r}: {error.strerror}"


def _problems_of(error: BaseException, code: int) -> list[Problem]:
    """Return the problems listed by an error, each with a remedy."""
    from burn_import.output import OutputRefused
    from burn_ir import ModelError, Problem

    if isinstance(error, OSError):  # a problem with the output path, not with the model
        return [Problem(_system_message(error))]
    if isinstance(error, ModelError):
        hint = HINTS.get(code, "") if code != 2 else ""
        return [replace(p, hint=p.hint or hint) for p in error.problems]
    is_refused = isinstance(error, OutputRefused)
    hint = HINTS[2] if is_refused and "expected" not in str(error) else ""
    hint = getattr(error, "hint", "") or hint
    return [Problem(line.strip(), hint=hint) for line in str(error).split("\n")]


@dataclass(frozen=True)
class Report:
    """A printer of results and problems as ``text``, ``json`` or ``github``."""

    style: str
    model: str

    def result(
        self, written: Written, dry_run: bool, notes: Sequence[str] = ()
    ) -> None:
        """Print the files that were or would be written, and the notes."""
        paths = [str(path) for path in written.files]
        if self.style == "json":
            weights = None if written.weights is None else str(written.weights)
            data = {"schema": SCHEMA, "module": paths[0], "weights": weights}
            about = {"changed": written.changed, **_as_data(written.changes)}
            said = {"notes": list(notes)} if notes else {}
            click.echo(_json_line({**data, **about, **said}))
            return
        word = _word(written.changed, dry_run)
        for path in paths:
            click.echo(f"{word} {clean(path)}")
        if written.changes is not None:
            for line in _diff_lines(written.changes):
                click.echo(line)
        for note in notes:
            click.echo(f"{colored('note', 'yellow')}: {clean(note)}", err=True)

    def record(self, done: Converted, dry_run: bool) -> None:
        """Print the tensors of a record that was written, or would be."""
        if self.style == "json":
            data: dict[str, object] = {"schema": SCHEMA, "record": str(done.record)}
            data |= {"shards": [str(p) for p in done.shards]} if done.shards else {}
            tensors = [asdict(row) for row in done.rows]
            about = {"source": done.source, "changed": done.changed}
            skipped = dict(done.skipped)
            click.echo(
                _json_line({**data, **about, "tensors": tensors, "skipped": skipped})
            )
            return
        for line in _table_lines(done):
            click.echo(line)
        for path in (done.record, *done.shards):
            click.echo(f"{_word(done.changed, dry_run)} {clean(str(path))}")

    def problems(self, error: BaseException, code: int) -> None:
        """Print all that is wrong with the model or the output."""
        from burn_import.transform import WrongOptions

        kind = "options" if isinstance(error, WrongOptions) else KINDS[code]
        kind = "output" if isinstance(error, OSError) else kind
        problems = _problems_of(error, code)
        if self.style == "json":
            self._json(code, kind, problems)
            return
        shown = problems[:_MOST_SHOWN]
        if self.style == "github":
            lines = [line for problem in shown for line in self._github(problem)]
        else:
            lines = list(self._text(shown, kind))
        for line in lines:
            click.echo(line, err=True)
        if len(problems) > _MOST_SHOWN:
            click.echo(f"and {len(problems) - _MOST_SHOWN} more", err=True)
        if len(problems) > 1 and self.style == "text":
            name = clean(self.model)
            word = colored("error", "red", bold=True)
            click.echo(f"{word}: {len(problems)} problems in {name}", err=True)
        if self.style == "text":
            click.echo(f"see: burn-import explain {kind}", err=True)

    def failure(self, message: str, code: int) -> None:
        """Print why the command produced no result."""
        from burn_ir import Problem

        if self.style == "json":
            self._json(
                code, "internal" if code == 70 else "interrupted", [Problem(message)]
            )
        elif self.style == "github":
            click.echo(self._github(Problem(message))[0], err=True)
        else:
            word = colored("error", "red", bold=True)
            click.echo(f"{word}: {clean(message)}", err=True)

    def usage(self, message: str) -> None:
        """Print that the command line is wrong, in a style for programs."""
        from burn_ir import Problem

        if self.style == "json":
            self._json(2, KINDS[2], [Problem(message)])
        else:
            click.echo(annotation("error", "burn-import", message), err=True)

    def _json(self, code: int, kind: str, problems: list[Problem]) -> None:
        rows = [asdict(problem) for problem in problems]
        data = {"schema": SCHEMA, "model": self.model, "code": code, "kind": kind}
        click.echo(_json_line({**data, "problems": rows}), err=True)

    def _text(self, problems: Sequence[Problem], kind: str) -> Iterator[str]:
        """Yield each problem; a run with one location and remedy shows them once."""
        for trailer, row in groupby(problems, lambda one: self._trailer(one, kind)):
            for problem in row:
                word = colored(f"error[{kind}]", "red", bold=True)
                yield f"{word}: {clean(problem.message)}"
            yield from trailer

    def _trailer(self, problem: Problem, kind: str) -> list[str]:
        if kind == "output":
            return []
        location = [clean(self.model)]
        if problem.node:
            location.append(f"node {clean(repr(problem.node))}")
        if problem.operator:
            opset = f", opset {problem.opset}" if problem.opset is not None else ""
            location.append(f"({clean(problem.operator)}{opset})")
        lines = [f"  --> {' '.join(location)}"]
        if problem.hint:
            lines.append(f"  = {colored('help', 'cyan')}: {clean(problem.hint)}")
        return lines

    def _github(self, problem: Problem) -> list[str]:
        return [annotation("error", self.model, str(problem))]
