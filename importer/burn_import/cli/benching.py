"""The command ``bench``."""

from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import click

from burn_import.cli.error_reports import Answer
from burn_import.cli.progress import progress
from burn_import.cli.report import Report, clean
from burn_import.cli.tables import format_option, show_json, show_table
from burn_import.cli.verifying import inputs_option, seed_option, size_option


@click.command("bench")
@click.argument("model", type=click.Path(path_type=Path))
@inputs_option
@size_option
@seed_option
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Of each engine, in turns.",
)
@click.option(
    "--generated", is_flag=True, help="With all kernels that LLVM can compile (jit)."
)
@click.option(
    "--profile", "profiling", is_flag=True, help="Show the time of each step."
)
@format_option
@click.pass_context
def bench_command(
    ctx: click.Context, /, model: Path, style: str, profiling: bool, **options: Any
) -> None:
    """Time the compiled module of MODEL (an ONNX file), and onnxruntime beside it."""
    with Answer(Report(style, str(model)), False) as answer:
        import burn
        from burn_import.loading import load
        from burn_import.verification.verify import check_runs, given_inputs

        inputs = given_inputs(
            model, options["inputs"], options["sizes"], options["seed"]
        )
        with progress(f"importing {model.name}"):
            module: Any = load(model)
        compiled: Any = burn.compile(module, generated=options["generated"] or None)
        tensors = [burn.tensor(array) for array in inputs.values()]
        check_runs(model, inputs, lambda: compiled(*tensors), options["inputs"] is None)
        calls = {"burn": lambda: compiled(*tensors)}
        calls |= _onnxruntime_call(model, inputs)
        times = _median_times(calls, options["runs"])
        profile = compiled.profile(*tensors) if profiling else None
        if style == "json":
            table = {} if profile is None else {"profile": profile.to_json()}
            show_json({"model": str(model), "ms": times, **table})
        else:
            rows = [
                (name, f"{ms:.3f}", f"{ms / times['burn']:.2f}")
                for name, ms in times.items()
            ]
            show_table(("engine", "ms", "ratio"), rows)
            for line in [] if profile is None else ["", *str(profile).splitlines()]:
                click.echo(clean(line))
    ctx.exit(answer.code)


def _onnxruntime_call(
    model: Path, inputs: Mapping[str, Any]
) -> dict[str, Callable[[], Any]]:
    """Return the onnxruntime call with the same thread count, if it is installed."""
    try:
        import onnxruntime
    except ImportError:
        return {}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        str(model), options, providers=["CPUExecutionProvider"]
    )
    return {"onnxruntime": lambda: session.run(None, dict(inputs))}


def _median_times(
    calls: Mapping[str, Callable[[], Any]], runs: int
) -> dict[str, float]:
    """Return the median milliseconds of each call; calls alternate after warm-up."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(runs + 2):
        for name, call in calls.items():
            start = perf_counter()
            call()
            if number >= 2:
                times[name].append((perf_counter() - start) * 1e3)
    return {name: median(values) for name, values in times.items()}
