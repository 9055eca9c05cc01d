"""Measures the memory of training steps on the CPU: ours, eager and compiled, and
PyTorch's.

    python -m benchmarks.training_memory [--torch PYTHON] [--only NAME]

Networks and batches are those of :mod:`benchmarks.training`. Each engine trains in a
process of its own with one thread. Memory is the resident set of the process (Linux)
without that after its imports: the peak of the first three steps, in which plans are
recorded and bound, and the peak of three later steps. Both contain the weights.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.cases import ROOT, SOURCES, print_table
from benchmarks.training_cases import CASES

HEAD = (
    *("network", "eager MB", "later", "compiled MB", "later"),
    *("torch MB", "later", "torch / compiled", "later"),
)
STEPS = 3
_STATUS = Path("/proc/self/status")
_PEAK = Path("/proc/self/clear_refs")


def _status(field: str) -> float:
    """Return a field of this process's status in MB."""
    lines = _STATUS.read_text("ascii").splitlines()
    return next(int(x.split()[1]) for x in lines if x.startswith(field)) / 1024


def _peak_of_steps(step: Any) -> float:
    """Return the peak of the resident set during a few steps in MB."""
    _PEAK.write_text("5", "ascii")  # resets the peak
    for _ in range(STEPS):
        step()
    return _status("VmHWM:")


def work(engine: str, name: str) -> None:
    """Print the peaks of the first and of later steps beyond the imports, in MB."""
    if engine == "torch":
        from benchmarks import training_torch

        imported = _status("VmRSS:")
        step = training_torch.stepping(name, 1)
    else:
        from benchmarks import training_ours

        imported = _status("VmRSS:")
        step = training_ours.stepping(name, engine == "compiled")
    first = _peak_of_steps(step)
    print(json.dumps((first - imported, _peak_of_steps(step) - imported)))


def measure(engine: str, name: str, torch: str) -> tuple[float, float]:
    """Return the peaks of an engine that trains in a process of its own."""
    paths = [str(ROOT), *(str(ROOT / source) for source in SOURCES)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        environment[variable] = "1"
    python = torch if engine == "torch" else sys.executable
    command = [python, "-m", "benchmarks.training_memory", "--work", engine, name]
    output = subprocess.run(
        command, env=environment, text=True, capture_output=True, check=True
    ).stdout
    first, later = json.loads(output)
    return first, later


def row_of(name: str, torch: str) -> list[str]:
    """Return a row of the table."""
    ours = [measure(engine, name, torch) for engine in ("eager", "compiled")]
    cells = [f"{peak:.0f}" for peaks in ours for peak in peaks]
    if not torch:
        return [name, *cells, *["-"] * 4]
    theirs = measure("torch", name, torch)
    ratios = [a / b for a, b in zip(theirs, ours[1], strict=True)]
    cells += [f"{peak:.0f}" for peak in theirs]
    return [name, *cells, *(f"{ratio:.2f}" for ratio in ratios)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measures the memory of training.")
    parser.add_argument("--torch", default="", help="a Python that has PyTorch")
    parser.add_argument("--only", default="", help="part of the names of networks")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(*options.work)
        return
    names = [name for name in CASES if options.only in name]
    print_table(HEAD, (row_of(name, options.torch) for name in names))


if __name__ == "__main__":
    main()
