"""The commands ``export`` and ``update``, which write ONNX files."""

from pathlib import Path
from typing import Any

import click

from burn_import.cli.error_reports import Answer
from burn_import.cli.progress import progress
from burn_import.cli.report import Report, clean
from burn_import.cli.tables import force_option, format_option, output_option, show_json
from burn_import.options import split_names


@click.command("export")
@click.argument("module", type=click.Path(path_type=Path))
@output_option
@click.option("--class-name", default="", help="[default: the last class with `load`]")
@click.option(
    "--weights",
    type=click.Path(path_type=Path),
    help="[default: the record beside MODULE]",
)
@click.option(
    "--inputs",
    type=click.Path(path_type=Path),
    help="Example arrays (.npz). [default: random ones of the declared types]",
)
@click.option(
    "--output-names",
    metavar="A,B",
    default="",
    help="[default: those in the docstring of MODULE]",
)
@click.option("--opset", default=20, show_default=True, type=click.IntRange(17, 23))
@click.option(
    "--fixed",
    is_flag=True,
    help="Fix all extents to those of the example. [default: declared names vary]",
)
@click.option(
    "--external-data", is_flag=True, help="Write initializers to a file beside."
)
@click.option(
    "--specialize",
    is_flag=True,
    help="Let Python read values: what it does then is fixed.",
)
@click.option("--no-verify", is_flag=True, help="Do not compare with onnxruntime.")
@force_option
@format_option
@click.pass_context
def export_command(
    ctx: click.Context, /, module: Path, output: str, style: str, **arguments: Any
) -> None:
    """Write the model in MODULE, a file of Python, as an ONNX file.

    MODULE is executed.
    """
    with Answer(Report(style, str(module)), False) as answer:
        from burn_import.cli.modules import load_module

        check_name(output)
        model = load_module(module, arguments["weights"], arguments["class_name"])
        answer.make_parent(Path(output))
        with progress(f"exporting {module.name}"):
            written = _export(model, output, arguments)
        if style == "json":
            data = written.data and str(written.data)
            compared = {"engine": written.engine, "difference": written.difference}
            notes = list(written.notes)
            show_json({"path": str(written.path), "data": data} | compared, notes=notes)
        else:
            _show(written)
    ctx.exit(answer.code)


def check_name(output: str) -> None:
    """Check that ``output`` has a file name that ONNX tools accept.

    Raises:
        OutputRefused: it has not.
    """
    from burn_import.output import OutputRefused

    if Path(output).suffix != ".onnx":
        raise OutputRefused(f"expected an output that ends in .onnx, got {output!r}")


def _export(model: Any, output: str, arguments: dict[str, Any]) -> Any:
    """Export ``model`` for inputs of the types that its module declares."""
    from burn_import.export.export import export_declared

    names = ("inputs", "fixed", "opset", "external_data", "specialize", "force")
    options = {key: arguments[key] for key in names}
    options["output_names"] = split_names((arguments["output_names"],))
    return export_declared(model, output, verify=not arguments["no_verify"], **options)


def _show(written: Any) -> None:
    for path in filter(None, (written.path, written.data)):
        click.echo(f"wrote {clean(str(path))}")
    if written.difference is not None:
        click.echo(f"{written.engine} agrees: difference {written.difference:.1e}")
    for note in written.notes:
        click.echo(f"note: {clean(note)}", err=True)


@click.command("update")
@click.argument("original", type=click.Path(path_type=Path))
@click.option(
    "--weights",
    required=True,
    type=click.Path(path_type=Path),
    help="The trained record.",
)
@output_option
@click.option(
    "--partial", is_flag=True, help="Write although some weights have no counterpart."
)
@force_option
@format_option
@click.pass_context
def update_command(
    ctx: click.Context,
    /,
    original: Path,
    weights: Path,
    output: str,
    partial: bool,
    force: bool,
    style: str,
) -> None:
    """Put trained weights into the ONNX file that their module was imported from.

    Nodes and names of ORIGINAL stay. Weights without a counterpart are listed.
    """
    with Answer(Report(style, str(original)), False) as answer:
        from burn_import.export.update import update_onnx

        check_name(output)
        arrays = _trained(weights)
        answer.make_parent(Path(output))
        done = update_onnx(original, arrays, output, partial=partial, force=force)
        if style == "json":
            fields = ("replaced", "unchanged", "without", "unknown", "missing")
            show_json({"path": str(done.path)} | {f: getattr(done, f) for f in fields})
        else:
            for key, reason in done.without.items():
                click.echo(f"left out {clean(key)}: {reason}", err=True)
            for key in done.unknown:
                click.echo(f"left out {clean(key)}: no key of the module", err=True)
            for key in done.missing:
                click.echo(f"not in the weights: {clean(key)}", err=True)
            click.echo(
                f"{len(done.replaced)} tensors replaced, {len(done.unchanged)} equal"
            )
            click.echo(f"wrote {clean(str(done.path))}")
    ctx.exit(answer.code)


def _trained(path: Path) -> dict[str, Any]:
    """Return the arrays of a record by key.

    Raises:
        OutputRefused: there is no such file, or it is no record.
    """
    from burn.record import RecordError, open_stored
    from burn.record.shards import stored_at
    from burn_import.cli.modules import no_record
    from burn_import.foreign import missing_remedy
    from burn_import.output import OutputRefused

    if not stored_at(path).is_file():
        problem = f"expected the record of the weights, got {str(path)!r}"
        raise OutputRefused(problem, missing_remedy(path))
    try:
        record = open_stored(path)
    except RecordError as error:
        raise no_record(error) from error
    return {key: record[key] for key in record}
