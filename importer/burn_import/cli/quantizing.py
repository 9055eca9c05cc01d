"""The command ``quantize``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from burn_import.cli.error_reports import Answer
from burn_import.cli.progress import progress
from burn_import.cli.report import Report, annotation, clean
from burn_import.cli.tables import force_option, format_option, show_json, show_table
from burn_import.cli.verifying import seed_option, size_option

if TYPE_CHECKING:
    from burn.plan.calibration import Accuracy
    from burn_import.quantization.quantize import Quantized
    from burn_import.quantization.samples import Sample

#: Layers that the table shows; JSON has all.
_MOST_LAYERS = 10


@click.command("quantize")
@click.argument("model", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="An ONNX file or a module (.py). [default: MODEL's name with the dtype, here]",
)
@click.option("--to", type=click.Choice(["int8", "bf16"]), default="int8")
@click.option(
    "--calibration",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Representative arrays by input name (.npz). May be repeated.",
)
@click.option(
    "--samples",
    "count",
    type=click.IntRange(min=1),
    help="Calibrate with this number of random samples instead.",
)
@click.option(
    "--evaluation",
    "evaluation_files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Arrays to measure the accuracy on. [default: those of --calibration]",
)
@click.option(
    "--per-channel/--per-tensor",
    default=True,
    show_default=True,
    help="Scales of weights: one for each output channel, or one for all.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="PATTERN",
    help="Leave nodes of this name or operator in float: '/head/*', Gemm. May be"
    " repeated.",
)
@click.option(
    "--no-sensitivity",
    is_flag=True,
    help="Leave out the accuracy with each layer alone quantized, which takes a run"
    " for each.",
)
@size_option
@seed_option
@force_option
@format_option
@click.pass_context
def quantize_command(
    ctx: click.Context,
    /,
    model: Path,
    output: Path | None,
    to: str,
    style: str,
    **arguments: Any,
) -> None:
    """Quantize MODEL, and show the accuracy that it costs.

    int8 inserts QuantizeLinear and DequantizeLinear by ranges that --calibration
    shows; onnxruntime has to be installed. bf16 rounds everything to bfloat16.
    MODEL is an ONNX file or what the importer reads besides, or a module that
    burn-import wrote, which is executed.
    """
    _check_options(to, arguments)
    with Answer(Report(style, str(model)), False) as answer:
        output = output or Path(f"{model.stem}_{to}.onnx")
        answer.make_parent(output)
        with progress(f"quantizing {model.name}"):
            result = _quantized(model, output, to, arguments)
        _show(result, style, model)
        if arguments["count"] and style == "text":
            click.echo("note: random samples; --calibration takes real ones", err=True)
    ctx.exit(answer.code)


def _check_options(to: str, arguments: dict[str, Any]) -> None:
    """Check that the options fit each other.

    Raises:
        click.UsageError: there are no samples or two kinds, or some have no effect.
    """
    if arguments["files"] and arguments["count"]:
        raise click.UsageError("expected one of --calibration and --samples")
    if not arguments["files"] and not arguments["count"]:
        raise click.UsageError(
            "expected samples: --calibration FILE.npz with representative inputs "
            "(numpy.savez('calibration.npz', NAME=ARRAY)), or --samples N for random "
            "ones, which show whether the model runs but not its accuracy"
        )
    if to == "bf16" and arguments["exclude"]:
        raise click.UsageError("--exclude is for int8: bf16 converts the whole model")


def _quantized(
    model: Path, output: Path, to: str, arguments: dict[str, Any]
) -> Quantized:
    from burn_import.quantization.quantize import quantize_bfloat16, quantize_int8
    from burn_import.verification.session import read_proto

    force = arguments["force"]
    with _onnx_file(model) as path:
        samples, evaluation = _samples(path, arguments)
        if to == "bf16":
            proto = read_proto(path)
            source = path if model.suffix == ".py" else model
            how = {"force": force, "origin": model}
            return quantize_bfloat16(source, output, proto, evaluation, **how)
        return quantize_int8(
            *(path, output, samples, evaluation),
            per_channel=arguments["per_channel"],
            exclude=arguments["exclude"],
            has_sensitivities=not arguments["no_sensitivity"],
            force=force,
            origin=model,
        )


@contextmanager
def _onnx_file(model: Path) -> Iterator[Path]:
    """The file itself if it is ONNX, else an export of what it is imported as."""
    from burn_import.file_kinds import FileKind, file_kind

    is_module = model.suffix == ".py"
    if not is_module and file_kind(model) in (FileKind.ONNX, FileKind.OTHER):
        yield model
        return
    from burn_import.cli.modules import load_module
    from burn_import.export.export import export_declared
    from burn_import.loading import load

    module = load_module(model) if is_module else load(model)
    with TemporaryDirectory() as folder:
        path = Path(folder, f"{model.stem}.onnx")
        export_declared(module, path, verify=False)
        yield path


def _samples(
    path: Path, arguments: dict[str, Any]
) -> tuple[list[Sample], list[Sample]]:
    """Return the samples to calibrate with, and those to compare with."""
    from burn_import.quantization.samples import random_samples, stored_samples
    from burn_import.verification.session import read_proto
    from burn_import.verification.verify import input_types

    types = input_types(read_proto(path))
    if arguments["files"]:
        samples = stored_samples(arguments["files"], types)
    else:
        samples = random_samples(
            types, arguments["count"], arguments["sizes"], arguments["seed"]
        )
    evaluation = stored_samples(arguments["evaluation_files"], types)
    return samples, evaluation or samples


def _show(result: Quantized, style: str, model: Path) -> None:
    if style == "json":
        outputs = [_as_data(row) for row in result.outputs]
        layers = [_as_data(row) for row in result.layers]
        about = {"model": str(model), "paths": list(map(str, result.paths))}
        rest = {"nodes": result.nodes, "notes": result.notes}
        show_json({**about, **rest}, outputs=outputs, layers=layers)
        return
    if style == "github":
        for row in result.outputs:
            text = f"output {row.name}: {row.accuracy}"
            click.echo(annotation("notice", str(model), text))
        return
    _show_tables(result)
    for path in result.paths:
        click.echo(f"wrote {clean(str(path))}")
    for note in result.notes:
        click.echo(f"note: {clean(note)}", err=True)


def _as_data(row: Any) -> dict[str, Any]:
    """Return a row of JSON, which has no infinity: null stands for it."""
    data = asdict(row)
    numbers = data["accuracy"].items()
    data["accuracy"] = {k: v if isfinite(v) else None for k, v in numbers}
    return data


def _show_tables(result: Quantized) -> None:
    header = ("output", "largest error", "mean error", "largest value", "SNR", "argmax")
    rows = [
        (
            row.name,
            *_numbers(row.accuracy),
            f"{100 * row.accuracy.agreement:.2f} %" if row.is_classification else "-",
        )
        for row in result.outputs
    ]
    show_table(header, rows)
    if result.layers:
        click.echo("\nlayers, each quantized alone, the most sensitive first:")
        shown = result.layers[:_MOST_LAYERS]
        lines = [(row.name, row.operator, *_numbers(row.accuracy)) for row in shown]
        show_table(("node", "operator", *header[1:5]), lines)
        if len(result.layers) > _MOST_LAYERS:
            click.echo(f"and {len(result.layers) - _MOST_LAYERS} more")
        click.echo("--exclude NODE leaves one in float\n")


def _numbers(accuracy: Accuracy) -> Sequence[str]:
    sizes = (accuracy.largest, accuracy.mean, accuracy.scale)
    return (*(f"{number:.3g}" for number in sizes), f"{accuracy.decibels:.1f} dB")
