"""Running many seeds in worker processes, and counting the outcomes."""

from __future__ import annotations

import argparse
import faulthandler
import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fuzz.checks import CRASHES, Finding, Report, report_of
from tests.fuzz.generator import PROFILES, generate
from tests.fuzz.generator.trial import Rejected
from tests.fuzz.storage import case_as_json

#: Seeds that one worker process runs before another one takes over.
BATCH = 40
#: Packages whose native code tells what a graph computes.
JUDGES = ("onnx", "onnxruntime")
#: Seconds that one graph may take.
MOST_SECONDS = 120


def run_seed(seed: int, profile: str = "mixed") -> dict[str, Any]:
    """Return the result of the graph of a seed as JSON, with the graph if it fails."""
    case = None
    signal.alarm(MOST_SECONDS)
    try:
        case = generate(seed, profile)
        report = report_of(case)
    except Rejected as error:
        report = Report(seed, "discarded", detail=f"generator: {error}")
    except CRASHES as error:
        text = f"{type(error).__name__}: {error}"
        report = Report(seed, "crashed", [Finding("crashed", "fuzzer", text)])
    finally:
        signal.alarm(0)
    line = {**as_json(report), "profile": profile}
    if report.findings and case is not None:
        line["case"] = case_as_json(case)
    return line


def work(first: int, last: int, profile: str) -> None:
    """Print a line of JSON for each seed; what a worker process does.

    Where native code ends the process, the stack is printed to the standard error.
    """
    faulthandler.enable()
    signal.signal(signal.SIGALRM, _stop)
    for seed in range(first, last):
        print(json.dumps(run_seed(seed, profile)), flush=True)


def _stop(*_: Any) -> None:
    raise TimeoutError(f"the graph took more than {MOST_SECONDS} s")


def as_json(report: Report) -> dict[str, Any]:
    """A report as JSON has it."""
    return {
        "seed": report.seed,
        "kind": report.kind,
        "detail": report.detail,
        "findings": [[f.kind, f.check, f.detail, f.inputs] for f in report.findings],
        "operators": sorted(":".join(key) for key in report.operators),
    }


def run_seeds(
    first: int, last: int, jobs: int, log: Path, profile: str = "mixed"
) -> list[dict[str, Any]]:
    """The reports of all seeds; those that ``log`` holds are not run again."""
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    logged = [{"profile": "mixed", **report} for report in map(json.loads, lines)]
    reports = {r["seed"]: r for r in logged if r["profile"] == profile}
    missing = [seed for seed in range(first, last) if seed not in reports]
    batches = _batches(missing)
    running: list[Worker] = []
    with log.open("a", encoding="utf-8") as file:
        while batches or running:
            while batches and len(running) < jobs:
                running.append(_started(batches.pop(0), profile, log))
            time.sleep(0.2)
            for worker in [w for w in running if w.process.poll() is not None]:
                running.remove(worker)
                for report in _finished(worker, batches):
                    reports[report["seed"]] = report
                    file.write(json.dumps(report) + "\n")
                    file.flush()
                    _tell(report)
    return [reports[seed] for seed in range(first, last) if seed in reports]


def _batches(seeds: list[int]) -> list[range]:
    batches: list[range] = []
    for seed in seeds:
        last = batches[-1] if batches else range(0)
        if last and last.stop == seed and len(last) < BATCH:
            batches[-1] = range(last.start, seed + 1)
        else:
            batches.append(range(seed, seed + 1))
    return batches


@dataclass
class Worker:
    """A process that runs some seeds, and the file that it writes to."""

    process: subprocess.Popen[str]
    seeds: range
    profile: str
    output: Path

    @property
    def errors(self) -> Path:
        """The file of its standard error."""
        return self.output.with_suffix(".errors")


def _started(seeds: range, profile: str, log: Path) -> Worker:
    output = log.with_suffix(f".{profile}.{seeds.start}.part")
    command = [sys.executable, "-m", "tests.fuzz", "--profile", profile, "--work"]
    command += [str(seeds.start), str(seeds.stop)]
    errors = output.with_suffix(".errors")
    with output.open("w", encoding="utf-8") as out, errors.open("wb") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, text=True)
    return Worker(process, seeds, profile, output)


def _finished(worker: Worker, batches: list[range]) -> list[dict[str, Any]]:
    """The reports of a worker; what it left undone goes back to the batches."""
    seeds = worker.seeds
    lines = worker.output.read_text("utf-8").splitlines()
    errors = worker.errors.read_text("utf-8", "replace")
    worker.output.unlink()
    worker.errors.unlink()
    reports = [json.loads(line) for line in lines if line.startswith('{"seed"')]
    done = seeds.start + len(reports)
    if done < seeds.stop:
        text = f"the process ended with {worker.process.returncode}"
        package = innermost_package(errors)
        if package in JUDGES:
            report = Report(done, "discarded", detail=f"{package}: {text}")
        else:
            detail = f"{text}: {errors[-2000:]}"
            report = Report(done, "crashed", [Finding("crashed", "process", detail)])
        reports.append({**as_json(report), "profile": worker.profile})
        if done + 1 < seeds.stop:
            batches.insert(0, range(done + 1, seeds.stop))
    return reports


def innermost_package(errors: str) -> str | None:
    """The installed package whose code was running, of a stack of ``faulthandler``.

    None if it was other code, or if there is no stack.
    """
    frame = re.search(r'most recent call first\):\s+File "(.+?)", line', errors)
    parts = Path(frame[1]).parts if frame else ()
    return parts[parts.index("site-packages") + 1] if "site-packages" in parts else None


def _tell(report: dict[str, Any]) -> None:
    if report["kind"] in ("right", "discarded"):
        return
    print(f"{report['profile']} {report['seed']}: {report['kind']}")
    for kind, check, detail, inputs in report["findings"][:3]:
        print(f"    {kind}: {check}, {inputs}: {detail[:300]}")
    sys.stdout.flush()


def table(reports: list[dict[str, Any]]) -> str:
    """Counts by what came of the graphs, and of the operators in them."""
    kinds = Counter(report["kind"] for report in reports)
    operators = Counter(name for r in reports for name in r["operators"])
    lines = [f"{len(reports)} graphs, {len(operators)} operators"]
    lines += [f"{kind:12}{count}" for kind, count in kinds.most_common()]
    lines.append("graphs with each operator, and those of them that are not right:")
    wrong = Counter(name for r in reports if is_wrong(r) for name in r["operators"])
    for name, count in sorted(operators.items()):
        lines.append(f"  {name.lstrip(':'):40}{count:6}{wrong[name]:6}")
    return "\n".join(lines)


def is_wrong(report: dict[str, Any]) -> bool:
    """Return whether a report is of a crash or a difference."""
    return report["kind"] in ("crashed", "different")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seeds", type=int, nargs=2, metavar=("A", "B"))
    parser.add_argument(
        "--profile", choices=[*PROFILES, "all"], default="mixed", help="of graphs"
    )
    parser.add_argument("--work", type=int, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--log", type=Path, default=Path("fuzz.jsonl"))
    options = parser.parse_args()
    if options.work:
        first, last = options.work
        work(first, last, options.profile)
        return
    first, last = options.seeds
    reports = []
    for profile in PROFILES if options.profile == "all" else [options.profile]:
        reports += run_seeds(first, last, options.jobs, options.log, profile)
    print(table(reports))
