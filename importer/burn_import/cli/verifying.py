"""The command ``verify``."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from burn_import.cli.choices import operators_option
from burn_import.cli.error_reports import Answer
from burn_import.cli.progress import progress
from burn_import.cli.report import Report, annotation, clean
from burn_import.cli.tables import format_option, show_json, show_table, sizes_of

#: Relative error of a derivative above which it is wrong.
_GRADIENT_TOLERANCE = 1e-3

inputs_option = click.option(
    "--inputs",
    type=click.Path(path_type=Path),
    help="Arrays by input name (.npz). [default: random ones]",
)
size_option = click.option(
    "--size",
    "sizes",
    multiple=True,
    callback=sizes_of,
    metavar="NAME=NUMBER",
    help="The size of a named extent of random inputs. May be repeated.",
)
seed_option = click.option(
    "--seed", default=0, show_default=True, help="For random inputs."
)


@click.command("verify")
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "--module",
    type=click.Path(path_type=Path),
    help="A module that was written, with its weights, instead of a new import.",
)
@inputs_option
@click.option(
    "--reference",
    type=click.Path(path_type=Path),
    help="Another ONNX file to compare with. [default: MODEL]",
)
@click.option(
    "--engine",
    type=click.Choice(["onnxruntime", "reference"]),
    default=None,
    help="[default: onnxruntime where it is installed]",
)
@size_option
@seed_option
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    help="The largest difference, relative to the largest number. [default: 1e-4, or"
    " two units of the output's dtype if that is more]",
)
@click.option(
    "--bisect", "bisecting", is_flag=True, help="Find the first node that differs."
)
@click.option(
    "--gradients",
    is_flag=True,
    help="Compare a derivative with a difference quotient, in float64.",
)
@operators_option
@format_option
@click.pass_context
def verify_command(
    ctx: click.Context,
    /,
    model: Path,
    module: Path | None,
    operators: tuple[str, ...],
    style: str,
    **options: Any,
) -> None:
    """Compare the module of MODEL (an ONNX file) with onnxruntime, by output.

    Exits with 1 if an output differs.
    """
    from burn_import.operators import importable_from, load_operators

    importable = importable_from(Path.cwd(), operators)
    with Answer(Report(style, str(model)), False) as answer, importable:
        from burn_import.cli.modules import load_module
        from burn_import.verification.verify import verify

        load_operators(operators)
        options["engine"] = options["engine"] or ""
        loaded = None if module is None else load_module(module)
        with progress(f"verifying {model.name}"):
            result = verify(model, module=loaded, **options)
        _show(result, style, model)
        answer.code = 0 if result.ok and not _is_gradient_wrong(result) else 1
    ctx.exit(answer.code)


def _is_gradient_wrong(result: Any) -> bool:
    return result.gradient is not None and result.gradient > _GRADIENT_TOLERANCE


def _show(result: Any, style: str, model: Path) -> None:
    if style == "json":
        rows = [asdict(row) for row in result.rows]
        divergence = result.divergence and asdict(result.divergence)
        data = {"model": str(model), "engine": result.engine, "ok": result.ok}
        more = {"outputs": rows, "divergence": divergence, "gradient": result.gradient}
        show_json({**data, "inputs": result.inputs, **more})
        return
    if style == "github":
        for row in result.rows:
            if not row.ok:
                text = f"output {row.name}: differs by {row.difference:.1e}"
                click.echo(annotation("error", str(model), text))
    cells = [
        (
            r.name,
            f"{r.dtype}{list(r.shape)}",
            f"{r.difference:.1e}",
            "ok" if r.ok else "DIFFERS",
        )
        for r in result.rows
    ]
    show_table(("output", "type", "difference", result.engine), cells)
    if result.gradient is not None:
        text = f"gradient: relative error {result.gradient:.1e}"
        if _is_gradient_wrong(result):
            text += f", above {_GRADIENT_TOLERANCE:.0e}: DIFFERS"
            if style == "github":
                click.echo(annotation("error", str(model), text))
        click.echo(text)
    if result.divergence is not None:
        click.echo(f"first difference: {clean(str(result.divergence))}")
