"""Measures steps of training on the CPU: ours, eager and compiled, and PyTorch's.

    python -m benchmarks.training [--torch PYTHON] [--only NAME] [--rounds 7]
                                  [--threads 2] [--processor]

``PYTHON`` is an interpreter that has PyTorch (``pip install torch==2.13.0``); without
it there is nothing to compare with. Networks, batches and gradient descent are the
same; each engine computes in a process of its own, and they take turns. Ratios are
PyTorch's time by ours: above 1 we are faster. The last one is that of the quickest
steps of all, which says more while other programs run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from statistics import median
from time import perf_counter, process_time, sleep
from typing import Any

from benchmarks.cases import ROOT, SOURCES, print_table
from benchmarks.training_cases import CASES

HEAD = (
    *("network", "eager ms", "compiled ms", "torch ms"),
    *("eager ratio", "ratio", "quickest"),
)
TURN = 1.0
PAUSE = 0.05


class Worker:
    """A process that makes steps of training when it is told to."""

    def __init__(self, engine: str, name: str, options: Any) -> None:
        paths = [str(ROOT), *(str(ROOT / source) for source in SOURCES)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            environment[variable] = str(options.threads)
        python = options.torch if engine == "torch" else sys.executable
        clock = "processor" if options.processor else "wall"
        command = [python, "-m", "benchmarks.training", "--work", engine, name]
        self._process = subprocess.Popen(
            [*command, "--threads", str(options.threads), "--clock", clock],
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.times: list[float] = []
        self.quickest: list[float] = []

    def turn(self) -> None:
        """Make steps for a while, and keep the median of their times, and the least."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(TURN, file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("a worker ended")
        usual, quickest = json.loads(line)
        self.times.append(usual)
        self.quickest.append(quickest)

    def end(self) -> None:
        """Let the process go."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def work(engine: str, name: str, threads: int, clock: str) -> None:
    """Answer every line with the median time of a step and the least, in seconds."""
    if engine == "torch":
        from benchmarks import training_torch

        step = training_torch.stepping(name, threads)
    else:
        from benchmarks import training_ours

        step = training_ours.stepping(name, engine == "compiled")
    now = process_time if clock == "processor" else perf_counter
    for _ in range(3):
        step()
    for line in sys.stdin:
        times: list[float] = []
        while sum(times) < float(line) or len(times) < 3:
            started = now()
            step()
            times.append(now() - started)
        print(json.dumps((median(times), min(times))), flush=True)


def measured(name: str, options: Any) -> list[str]:
    """A row of the table."""
    engines = ["eager", "compiled", *(["torch"] if options.torch else [])]
    workers = {engine: Worker(engine, name, options) for engine in engines}
    for _ in range(options.rounds):
        for worker in workers.values():
            sleep(PAUSE)
            worker.turn()
    for worker in workers.values():
        worker.end()
    results = {engine: median(worker.times) for engine, worker in workers.items()}
    row = [name, *(f"{1000 * results[engine]:.1f}" for engine in engines)]
    if "torch" not in results:
        return [*row, "-", "-", "-", "-"]
    each = [results["torch"] / results[engine] for engine in ("eager", "compiled")]
    least = {engine: min(worker.quickest) for engine, worker in workers.items()}
    each.append(least["torch"] / least["compiled"])
    return [*row, *(f"{ratio:.2f}" for ratio in each)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measures steps of training.")
    parser.add_argument("--torch", default="", help="a Python that has PyTorch")
    parser.add_argument("--only", default="", help="part of the names of networks")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--processor", action="store_true", help="processor time")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--clock", default="wall", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        engine, name = options.work
        work(engine, name, options.threads, options.clock)
        return
    names = [name for name in CASES if options.only in name]
    print_table(HEAD, (measured(name, options) for name in names))


if __name__ == "__main__":
    main()
