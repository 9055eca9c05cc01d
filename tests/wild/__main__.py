"""The commands ``run``, ``table``, ``gradients`` and ``list`` of the suite."""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.wild.catalogue import (
    LIBRARIES,
    RANDOM,
    missing_packages,
    read_catalogue,
)
from tests.wild.entry import FORMATS, Task, ordered_tasks
from tests.wild.results import OUTCOMES, Row, read_rows, trim_partial_line

ROOT = Path(__file__).parent.parent.parent
#: The folder of the recorded results, which are part of the project.
RECORDED = Path(__file__).parent
CUDA_EXAMINATION = "tests.wild.cuda:CudaExamination"
#: Variables that libraries read when they are imported: threads and network. PyTorch
#: sees no device, and does not initialize CUDA, which forked processes could not use.
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELIZM": "false",
    "CUDA_VISIBLE_DEVICES": "",
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.wild", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="export, import and compare")
    _add_run(run)
    for command in (run, commands.add_parser("list", help="print the tasks")):
        _add_selection(command)
    gradients = commands.add_parser("gradients", help="compare with float64")
    gradients.add_argument("--out", type=Path, required=True, help="as of run")
    gradients.add_argument("--only", action="append", help="pattern of LIBRARY/NAME")
    gradients.add_argument("--page", type=Path, help="docs/gradients.md, to write it")
    table = commands.add_parser("table", help="print the table and write the page")
    table.add_argument(
        "results", type=Path, nargs="*", help="of runs; replace what is recorded"
    )
    table.add_argument("--recorded", type=Path, default=RECORDED, metavar="FOLDER")
    table.add_argument("--page", type=Path, default=ROOT / "docs" / "coverage.md")
    table.add_argument("--no-page", action="store_true", help="only print")
    return parser


def _add_run(run: argparse.ArgumentParser) -> None:
    run.add_argument("--out", type=Path, required=True, help="lines of JSON, resumed")
    run.add_argument("--jobs", type=int, default=1, help="processes at a time")
    run.add_argument("--time-budget", type=float, help="stop after so many seconds")
    run.add_argument(
        "--timeout", type=float, default=120.0, help="CPU seconds for a file"
    )
    run.add_argument("--memory", type=float, default=8.0, help="GiB for a file")
    run.add_argument("--retry", default="", help="outcomes to run again, by comma")
    run.add_argument(
        "--right-in",
        type=Path,
        nargs="+",
        default=[],
        metavar="RESULTS",
        help="results of other runs; files that are right there are skipped",
    )
    run.add_argument(
        "--cuda", action="store_true", help="repeat the calls on the CUDA device"
    )


def _add_selection(command: argparse.ArgumentParser) -> None:
    command.add_argument("--only", action="append", help="pattern of LIBRARY/NAME")
    command.add_argument(
        "--libraries", default=",".join(LIBRARIES), help=f"or {RANDOM}"
    )
    command.add_argument(
        "--seeds", type=_seeds, default=range(100), help="FIRST:LAST, for random"
    )
    command.add_argument("--formats", default=",".join(FORMATS))


def _seeds(text: str) -> range:
    first, _, last = text.partition(":")
    return range(int(first), int(last or first) + 1)


def chosen_tasks(options: argparse.Namespace) -> list[Task]:
    """Return the tasks that the options name; a missing package is reported."""
    libraries = []
    for library in options.libraries.split(","):
        missing = missing_packages(library)
        if missing:
            print(f"{library}: skipped, not installed: {', '.join(missing)}")
        else:
            libraries.append(library)
    entries = read_catalogue(libraries, options.seeds)
    for library in libraries:
        count = sum(entry.library == library for entry in entries)
        print(f"{library}: {count} architectures")
    patterns = options.only or ["*"]
    tasks = ordered_tasks(entries, options.formats.split(","))
    return [
        task
        for task in tasks
        if any(fnmatch.fnmatch(task.entry.key, pattern) for pattern in patterns)
    ]


def _run(options: argparse.Namespace) -> None:
    os.environ.update(ENVIRONMENT)
    if options.jobs > 1:
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        os.environ.update(dict.fromkeys(names, "1"))
    from tests.wild.pool import EXAMINATION, Limits, run_tasks, warm_up
    from tests.wild.versions import installed_versions

    tasks = chosen_tasks(options)
    trim_partial_line(options.out)
    again = set(options.retry.split(",")) - {""}
    rows = read_rows([options.out])
    done = {row.key for row in rows if row.outcome not in again}
    done |= {row.key for row in read_rows(options.right_in) if row.outcome == "right"}
    waiting = [task for task in tasks if task.key not in done]
    print(f"{len(tasks)} files, {len(tasks) - len(waiting)} of them finished before")
    warm_up()
    versions = installed_versions()
    limits = Limits(options.timeout, int(options.memory * 2**30))
    counts = dict.fromkeys(OUTCOMES, 0)
    with options.out.open("a", encoding="utf-8") as file:

        def report(row: Row) -> None:
            row.versions = versions
            file.write(row.to_json() + "\n")
            file.flush()
            counts[row.outcome] += 1
            print(_line(row, sum(counts.values()), len(waiting)), flush=True)

        run_tasks(
            *(waiting, options.jobs, limits, report, options.time_budget),
            CUDA_EXAMINATION if options.cuda else EXAMINATION,
        )
    print(", ".join(f"{name}: {n}" for name, n in counts.items() if n))


def _compare_gradients(options: argparse.Namespace) -> None:
    """Examine the gradients of files without a row, and write the page of all."""
    os.environ.update(ENVIRONMENT)
    from tests.wild.gradient_page import gradient_page
    from tests.wild.gradients import EXAMINATION, gradient_tasks
    from tests.wild.pool import Limits, run_tasks, warm_up
    from tests.wild.versions import installed_versions

    trim_partial_line(options.out)
    done = {row.key for row in read_rows([options.out])}
    tasks = gradient_tasks(options.only or ["*"])
    warm_up()
    versions = installed_versions()
    with options.out.open("a", encoding="utf-8") as file:

        def report(row: Row) -> None:
            row.versions = versions
            file.write(row.to_json() + "\n")
            file.flush()
            print(_line(row, len(done) + 1, len(tasks)), flush=True)
            done.add(row.key)

        waiting = [task for task in tasks if task.key not in done]
        run_tasks(waiting, 1, Limits(), report, examination=EXAMINATION)
    if options.page:
        options.page.write_text(gradient_page(read_rows([options.out])), "utf-8")
        print(f"wrote {options.page}")


def _line(row: Row, number: int, total: int) -> str:
    seconds = sum(row.seconds.values())
    cause = row.cause.splitlines()[0][:150] if row.cause else ""
    gradient = f", gradients {row.gradient[:100]}" if row.gradient else ""
    cuda = f", CUDA {row.cuda[:150]}" if row.cuda else ""
    outcome = f"{row.outcome}{gradient}{cuda}"
    text = f"[{number}/{total}] {row.key}: {outcome} ({seconds:.1f} s)"
    return f"{text} {row.stage}: {cause}" if row.outcome != "right" else text


def _table(options: argparse.Namespace) -> None:
    from tests.wild.recorded import merge_rows, read_recorded, write_recorded
    from tests.wild.table import coverage_page, summary_text

    rows = merge_rows(read_recorded(options.recorded), read_rows(options.results))
    print(summary_text(rows))
    if not options.no_page:
        write_recorded(options.recorded, rows)
        options.page.write_text(coverage_page(rows), "utf-8")
        print(f"wrote {options.page}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that ``arguments`` name."""
    options = _parser().parse_args(arguments)
    if options.command == "table":
        _table(options)
    elif options.command == "gradients":
        _compare_gradients(options)
    elif options.command == "list":
        for task in chosen_tasks(options):
            print(task.key)
    else:
        _run(options)


if __name__ == "__main__":
    main(sys.argv[1:])
