"""Commands that only read: ``check``, ``inspect``, ``ops``, ``weights``, ``doctor``."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from burn_import.cli.error_reports import Answer
from burn_import.cli.report import Report, annotation, clean, colored
from burn_import.cli.tables import (
    force_option,
    format_option,
    show_json,
    show_table,
    sizes_of,
)

_model = click.argument("model", type=click.Path(path_type=Path))


@click.command("check")
@click.argument("modules", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    help="The model file, to check whether it changed.",
)
@click.option(
    "--config",
    metavar="FILE",
    help="The config.json that weights were imported with, where it is not the one in"
    " their folder.",
)
@format_option
@click.pass_context
def check_command(
    ctx: click.Context,
    /,
    modules: tuple[Path, ...],
    model: Path | None,
    config: str | None,
    style: str,
) -> None:
    """Exit with 1 if generated MODULES were edited, or are stale.

    Of a folder, all files that burn-import wrote are checked.

    A module and its record have to be those that were written; with --model the
    module also has to be of the file as it is now.
    """
    with Answer(Report(style, ", ".join(map(str, modules))), False) as answer:
        from burn_import.status import generated_modules, status_of

        files = [file for path in modules for file in generated_modules(path)]
        statuses = [status_of(file, model, config) for file in files]
        if style == "json":
            show_json(
                {"modules": [{**asdict(s), "module": str(s.module)} for s in statuses]}
            )
        else:
            if not statuses:
                places = clean(", ".join(map(str, modules)))
                click.echo(f"burn-import wrote no module in {places}", err=True)
            for status in statuses:
                name, text = str(status.module), "; ".join(status.problems)
                if text and style == "github":
                    click.echo(annotation("error", name, text))
                shown = colored(text or "ok", "red" if text else "green")
                click.echo(f"{clean(name)}: {shown}")
        answer.code = 1 if any(status.problems for status in statuses) else 0
    ctx.exit(answer.code)


@click.command("inspect")
@_model
@click.option(
    "--size",
    "sizes",
    multiple=True,
    callback=sizes_of,
    metavar="NAME=NUMBER",
    help="The size of a named dimension, for FLOPs and memory. [default: 1]",
)
@click.option(
    "--graph",
    "drawing",
    type=click.Path(path_type=Path),
    help="Draw the modules and the data flow between them instead (.svg or .dot).",
)
@click.option(
    "--depth",
    type=click.IntRange(min=0),
    help="The depth of the drawn modules. [default: the deepest with up to 200 boxes]",
)
@force_option
@format_option
@click.pass_context
def inspect_command(
    ctx: click.Context,
    /,
    model: Path,
    sizes: dict[str, int],
    style: str,
    **arguments: Any,
) -> None:
    """Show what is in MODEL: layers, parameters, operators, FLOPs, memory."""
    drawing = arguments["drawing"]
    if drawing is None and (arguments["depth"] is not None or arguments["force"]):
        raise click.UsageError("expected --graph FILE with --depth and --force")
    if drawing is not None and sizes:
        raise click.UsageError("expected one of --graph and --size")
    with Answer(Report(style, str(model)), False) as answer:
        if drawing is not None:
            _draw(model, drawing, arguments["depth"], arguments["force"], style)
            ctx.exit()
        from burn_import.inspection import inspect_model

        facts = inspect_model(model, sizes)
        if style == "json":
            show_json(asdict(facts))
        else:
            _show_facts(facts)
    ctx.exit(answer.code)


def _draw(
    model: Path, drawing: Path, depth: int | None, force: bool, style: str
) -> None:
    from burn_import.drawing.files import check_drawing, write_drawing
    from burn_import.drawing.flow import flow_of
    from burn_import.pipeline import assemble_model

    check_drawing(drawing, force=force)  # fail before the import runs
    flow = flow_of(assemble_model(model), depth)
    write_drawing(flow, drawing, force=force)
    if style == "json":
        data = {"path": str(drawing), "boxes": len(flow.boxes), "depth": flow.depth}
        show_json(data, deeper=flow.deeper)
    else:
        click.echo(f"wrote {clean(str(drawing))}")
        click.echo(f"{len(flow.boxes)} boxes, modules to depth {flow.depth}")
        if flow.deeper:
            depth = flow.depth + 1
            click.echo(f"pass --depth {depth} to draw {flow.deeper} boxes")


def _show_facts(facts: Any) -> None:
    for kind in ("inputs", "outputs"):
        for name, text in getattr(facts, kind).items():
            click.echo(f"{kind[:-1]:6}  {clean(name)}: {text}")
    rows = [(r.path, r.parameters, r.bytes, r.dtypes) for r in facts.layers]
    show_table(("layer", "parameters", "bytes", "dtype"), rows)
    show_table(("operator", "nodes"), list(facts.operators.items()))
    click.echo(f"parameters: {facts.parameters}, {facts.weight_bytes} bytes")
    unknown = (
        f" (without {facts.unknown} nodes of unknown shape)" if facts.unknown else ""
    )
    click.echo(
        f"FLOPs: {facts.flops}{unknown}; largest activations: {facts.peak_bytes} bytes"
    )


@click.command("ops")
@_model
@format_option
@click.pass_context
def ops_command(ctx: click.Context, /, model: Path, style: str) -> None:
    """Show the operators of MODEL (ONNX) and whether each is supported.

    Exits with 4 if one is not.
    """
    with Answer(Report(style, str(model)), False) as answer:
        from burn_import.inspection import operator_rows

        rows, problems = operator_rows(model)
        if style == "json":
            shown = [asdict(row) for row in rows]
            show_json({"operators": shown, "problems": problems})
        else:
            cells = [
                (r.domain or "ai.onnx", r.operator, r.opset, r.nodes, r.status)
                for r in rows
            ]
            show_table(("domain", "operator", "opset", "nodes", "status"), cells)
            for problem in problems:
                click.echo(clean(problem), err=True)
        answer.code = 4 if problems or any(r.status != "supported" for r in rows) else 0
    ctx.exit(answer.code)


@click.command("weights")
@_model
@format_option
@click.pass_context
def weights_command(ctx: click.Context, /, model: Path, style: str) -> None:
    """Show the weights of MODEL by key: a record, a checkpoint, or a model."""
    with Answer(Report(style, str(model)), False) as answer:
        from burn_import.inspection import weight_rows

        rows = weight_rows(model)
        if style == "json":
            show_json({"weights": [asdict(row) for row in rows]})
        else:
            cells = [(r.name, r.dtype, list(r.shape), r.bytes) for r in rows]
            show_table(("key", "dtype", "shape", "bytes"), cells)
            total = sum(row.bytes for row in rows)
            click.echo(f"{len(rows)} tensors, {total} bytes")
    ctx.exit(answer.code)


@click.command("doctor")
@format_option
def doctor_command(style: str) -> None:
    """Show versions, the CPU's engine and the devices."""
    from burn_import.inspection import environment

    facts = environment()
    if style == "json":
        show_json(facts)
    else:
        show_table(("what", "value"), list(facts.items()))
