"""Commands, their options, and the exit codes.

====  =======================================
0     done
1     a check or a comparison failed
2     wrong usage, or an output that is refused
3     the input cannot be read as a model
4     the model uses what is not supported
5     the model contradicts itself
70    a defect of burn-import
130   interrupted
====  =======================================
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from burn_import.cli.choices import choices, options_of
from burn_import.cli.error_reports import Answer
from burn_import.cli.progress import progress
from burn_import.cli.report import Report
from burn_import.cli.tables import format_option, show_json
from burn_import.collector import uncollected
from burn_import.options import Options
from burn_import.version import VERSION

if TYPE_CHECKING:
    from burn.record import Precision
    from burn_import.pipeline import Compiled


#: Commands that are loaded on first use, by their module.
LAZY = {
    "bench": "benching",
    "check": "inspecting",
    "diff": "comparing",
    "doctor": "inspecting",
    "explain": "explanations",
    "export": "exporting",
    "inspect": "inspecting",
    "ops": "inspecting",
    "quantize": "quantizing",
    "update": "exporting",
    "verify": "verifying",
    "weights": "inspecting",
}

#: Where a context keeps the words of the command line.
_WORDS = "burn_import.words"


@contextmanager
def _formatted(args: Sequence[str]) -> Iterator[None]:
    """Context in which errors of usage are shown in the format of ``--format``."""
    try:
        yield
    except click.UsageError as error:
        pairs = pairwise(" ".join(args).replace("=", " ").split())
        style = next((word for option, word in pairs if option == "--format"), "text")
        if style in ("json", "github"):
            message = error.format_message()

            def show(file: Any = None) -> None:
                Report(style, "").usage(message)

            error.show = show  # type: ignore[method-assign]
        raise


class DefaultGroup(click.Group):
    """A command group in which the name of the command ``import`` is optional."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *LAZY})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in LAZY:
            module = import_module(f"burn_import.cli.{LAZY[name]}")
            command: click.Command = getattr(module, f"{name}_command")
            return command
        return super().get_command(ctx, name)

    def _check_spelling(self, ctx: click.Context, word: str) -> None:
        """Check that ``word`` is not a misspelled command.

        Raises:
            click.UsageError: it is; the message names similar commands.
        """
        if not word.isalpha() or Path(word).exists():
            return
        near = get_close_matches(word, self.list_commands(ctx), 2, 0.6)
        help_text = f"; did you mean {' or '.join(near)}?" if near else ""
        raise click.UsageError(
            f"there is no command {word!r}, nor a file of this name{help_text}", ctx
        )

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        words = tuple(args)  # parsing removes them from the list
        with _formatted(words):
            ctx = super().make_context(info_name, args, parent, **extra)
        ctx.meta[_WORDS] = words
        return ctx

    def invoke(self, ctx: click.Context) -> Any:
        with _formatted(ctx.meta[_WORDS]):
            return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {"--version", "-v", "-h", "--help", *self.commands, *LAZY}
        first = next(iter(args[1:] if args[:1] == ["-v"] else args), None)
        if first is not None and first not in own:
            self._check_spelling(ctx, first)
            args = ["import", *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=DefaultGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version", is_flag=True, help="Show the version; with -v, also what computes."
)
@click.option("-v", "detailed", is_flag=True, hidden=True)
@click.pass_context
def burn_import(ctx: click.Context, version: bool, detailed: bool) -> None:
    """Turn model files into Python modules.

    `burn-import MODEL -o OUT.py` is short for `burn-import import MODEL -o OUT.py`.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        ctx.color = False
    if version:
        click.echo(f"burn-import, version {VERSION}")
        if detailed:
            _show_engine()
        ctx.exit()
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _show_engine() -> None:
    """Print the CPU engine, its location, and why other engines are not used."""
    from burn.backend import engine

    cpu_engine = engine()
    runtime = f" ({cpu_engine.runtime})" if cpu_engine.runtime else ""
    click.echo(f"CPU engine: {cpu_engine.name} {cpu_engine.version}{runtime}")
    if cpu_engine.path:
        click.echo(f"  {cpu_engine.path}")
    for note in cpu_engine.notes:
        click.echo(f"  not used: {note}" if cpu_engine.path else f"  {note}")


@burn_import.command("import")
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The module to write; the weights go beside it. [default: MODEL's name, here]"
    " A record (.safetensors, .bpk, .mpk, .bin, .json; the last three also with .gz)"
    " takes the weights alone.",
)
@choices
@click.option(
    "--precision",
    type=click.Choice(["full", "half", "double"]),
    help="For a record: float32 and int32, float16 and int16, or float64 and int64.",
)
@click.option("--force", is_flag=True, help="Replace a file that a person edited.")
@click.option("--dry-run", is_flag=True, help="Write nothing, show what would change.")
@click.option(
    "--depfile",
    type=click.Path(path_type=Path),
    help="Write the files that were read here, as a rule for Ninja or Make.",
)
@format_option
@click.option(
    "-v", "--verbose", is_flag=True, help="Show a traceback of internal errors."
)
@click.pass_context
def import_command(
    ctx: click.Context,
    /,
    model: Path,
    output: Path | None,
    precision: Precision | None,
    force: bool,
    dry_run: bool,
    depfile: Path | None,
    style: str,
    verbose: bool,
    **arguments: Any,
) -> None:
    """Write the Python module of MODEL: an ONNX file, an exported program or weights.

    Weights (.pt, .pth, .ckpt, .bin, .safetensors or its index) become the whole model
    where the architecture is known, else its modules, to be completed by hand.
    Where the output is a record (`-o weights.safetensors`), MODEL is a file of weights
    (.pt, .pth, .ckpt, .bin, .safetensors or its index, or a record of Burn), and these
    are written.
    """
    options = options_of(arguments)
    record = output if _is_record(output) else None
    if precision is not None and record is None:
        raise click.UsageError("expected a record as output, to have a precision")
    if depfile is not None and dry_run:
        raise click.UsageError("expected one of --depfile and --dry-run")
    from burn_import.operators import importable_from

    report = Report(style, str(model))
    how = {"force": force, "dry_run": dry_run}
    importable = importable_from(Path.cwd(), options.operators)
    with Answer(report, verbose) as answer, importable:
        if record is not None:
            _check_for_record(options)
        _prepare_files(answer, output, depfile, dry_run=dry_run)
        if record is not None:
            files = _convert(report, model, record, options, precision, **how)
        else:
            files = _import(report, model, output, options, **how)
        if depfile is not None:
            from burn_import.build.depfile import write_depfile

            write_depfile(depfile, files, model, options)
    ctx.exit(answer.code)


def _prepare_files(
    answer: Answer, output: Path | None, depfile: Path | None, *, dry_run: bool
) -> None:
    """Create the parent of the output before the import, so that errors come first.

    Raises:
        OutputRefused: ``depfile`` is another file.
        OSError: a parent is not a directory, or cannot be created.
    """
    if output is not None:
        answer.make_parent(output, dry_run=dry_run)
    if depfile is not None:
        from burn_import.build.depfile import check_depfile

        check_depfile(depfile)


def _convert(
    report: Report,
    model: Path,
    record: Path,
    options: Options,
    precision: Precision | None,
    *,
    force: bool,
    dry_run: bool,
) -> Sequence[Path]:
    """Write or show the record of a file of weights; return its files."""
    from burn_import.weights import convert

    key = options.hints.top_level_key
    how: dict[str, Any] = {"force": force, "dry_run": dry_run}
    how["shard_size"] = options.largest_file
    done = convert(model, record, key, precision=precision, **how)
    report.record(done, dry_run)
    return done.record, *done.shards


def _check_for_record(options: Options) -> None:
    """Check that no option is about the module, which is not written.

    Raises:
        WrongOptions: one is.
    """
    from burn_import.transform.option_checks import given_options, refuse_options

    flags = set(given_options(options)) - {"--top-level-key", "--shard-size"}
    refuse_options(options, flags, "a module as output", "a record")


@burn_import.command("passes")
@format_option
def passes_command(style: str) -> None:
    """List the passes that simplify a model, in the order in which they run."""
    from burn_import.passes import OPTIONAL_PASSES, pass_names, summary

    names = pass_names()
    asked = {apply.__name__ for apply in OPTIONAL_PASSES}
    if style == "json":
        rows = [
            {"name": name, "summary": summary(name), "default": name not in asked}
            for name in names
        ]
        show_json({"passes": rows})
        return
    width = max(map(len, names))
    for name in names:
        only = " Only if asked for by name." * (name in asked)
        click.echo(f"{name:{width}}  {summary(name)}{only}")


def _is_record(output: Path | None) -> bool:
    if output is None or output.suffix == ".py":
        return False
    from burn_import.weights import is_record_name

    return is_record_name(output)


def _import(
    report: Report,
    model: Path,
    output: Path | None,
    options: Options,
    *,
    force: bool,
    dry_run: bool,
) -> Sequence[Path]:
    """Write or show the module; return its files."""
    from burn_import.output import OutputRefused, check_module_path, check_ours

    with uncollected():  # modules dominate the time of a small import
        from burn_import.pipeline import import_model, module_stem, write_model

    output = output or Path(f"{module_stem(model)}.py")
    name = options.class_name
    if name is not None and not _is_class_name(name):
        raise OutputRefused(f"expected an identifier as class name, got {name!r}")
    check_module_path(output)
    if output.resolve() == model.resolve():
        from burn_import.sources import read

        read(model)  # says what kind of file it is
        raise OutputRefused("expected another file as output than the model", "Pass -o")
    if not force:  # fail before the import runs; the writer checks again
        check_ours(output)
    with progress(f"importing {model.name}"):
        compiled = import_model(model, replace(options, stem=output.stem))
        written = write_model(compiled, output, force=force, dry_run=dry_run)
    report.result(written, dry_run, (*_rename_note(name, compiled), *compiled.notes))
    return written.files


def _rename_note(name: str | None, compiled: Compiled) -> list[str]:
    """Return a note if the class could not get the requested name."""
    if name in (None, compiled.class_name):
        return []
    return [
        f"the class is called {compiled.class_name}: {name!r} is no class name, or "
        "hides a name that the module uses"
    ]


def _is_class_name(name: str) -> bool:
    import keyword

    return name.isidentifier() and name.isascii() and not keyword.iskeyword(name)


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    burn_import.main(None if args is None else list(args), prog_name="burn-import")
