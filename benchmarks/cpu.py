"""Measures inference on the CPU: oneDNN and NumPy behind `burn`, and onnxruntime.

    python -m benchmarks.cpu [FOLDER ...] [--only NAME] [--rounds 9] [--ours compiled]
                             [--against openvino] [--threads 2,4] [--processor]
                             [--busy 1]

The models are ResNet-50, MobileNetV2 and BERT-base with random weights, and every
``.onnx`` file below the folders that has a ``NAME.golden.npz`` beside it. Each engine
computes in a process of its own, because the threads of two libraries are in each
other's way; they take turns, so that all see the same disturbances. A round is one
turn of each. The ratio is the other engine's median by ours, of each round: above 1 we
are faster. The table has the median over the rounds, their quartiles, and the ratio of
the quickest calls of all, which says more while other programs run. Start is the time
from Python's start to the first result, memory what the process had at most. The last
row is the geometric mean. On a machine that others use as well, the processor's time of
one thread (``--threads 1 --processor``) is what can be trusted.

``int8`` is calibrated by the inputs of the model; ``onnxruntime-int8`` computes what
its own static quantization makes of the file, by the same inputs. ``generated`` is
``compiled`` with all kernels that can be generated, not only those that are estimated
to pay. With several numbers of ``--threads`` each model has a row for each. With
``--busy`` so many processes that never rest compete for the processors.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from typing import Any

import numpy as np

from benchmarks.cases import ROOT, SOURCES, Feeds, print_table
from benchmarks.networks import NETWORKS
from benchmarks.quantized import quantized
from burn_import.pipeline import import_model, module_stem, write_model

COLUMNS = 10
#: Of the largest result, how far those of two engines may be from each other.
CLOSE = {"bf16": 5e-2, "openvino": 5e-2, "int8": 0.2, "onnxruntime-int8": 0.2}
# Threads of a library wait for work a while after a call, on the other's cores.
PAUSE = 0.05
TURN = 0.3
MODULE = "benchmarks.cpu_worker"


@dataclass(frozen=True)
class Model:
    """A model in a file, and what goes in, in the order of its inputs."""

    name: str
    path: Path
    feeds: Feeds


class Worker:
    """A process with a model and an engine; ``start`` is what its first result took."""

    def __init__(
        self, engine: str, model: Path, name: str, inputs: Path, options: Any
    ) -> None:
        paths = [str(ROOT), *(str(ROOT / source) for source in SOURCES)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            environment[variable] = str(options.threads)
        if engine == "numpy":
            environment["BURN_ENGINE"] = "numpy"
        command = [sys.executable, "-m", MODULE, engine, str(model), name, str(inputs)]
        command += [str(options.threads), "processor" if options.processor else "wall"]
        started = perf_counter()
        self._engine = engine
        self._process = subprocess.Popen(
            command,
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._answer()
        self.start = perf_counter() - started
        self.rounds: list[list[float]] = []
        with np.load(f"{inputs}.{engine}.npz") as file:
            self.results = [file[key] for key in file.files]

    def turn(self, seconds: float) -> None:
        """Compute for some seconds."""
        assert self._process.stdin is not None
        print(seconds, file=self._process.stdin, flush=True)
        self.rounds.append(self._answer())

    def end(self) -> int:
        """The bytes of memory that the process had at most, now that it has ended."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        most: int = self._answer()
        self._process.wait()
        return most

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            raise RuntimeError(f"{self._engine} fails")
        return json.loads(line)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measures inference on the CPU.")
    parser.add_argument("folders", nargs="*", help="folders with more .onnx files")
    parser.add_argument("--only", default="", help="part of the names of models")
    parser.add_argument("--rounds", type=int, default=9)
    own = ("ours", "compiled", "generated", "numpy", "bf16", "int8")
    parser.add_argument("--ours", choices=own, default="ours")
    others = ("onnxruntime", "openvino", "onnxruntime-int8", "compiled")
    parser.add_argument("--against", choices=others, default=others[0])
    parser.add_argument("--threads", type=_counts, default=[2], metavar="N[,N]")
    parser.add_argument("--processor", action="store_true", help="processor time")
    parser.add_argument("--busy", type=int, default=0, help="processes that compete")
    options = parser.parse_args()
    with TemporaryDirectory() as folder, _competing(options.busy):
        print_table(_head(options.against), _rows(Path(folder), options))


@contextmanager
def _competing(count: int) -> Iterator[None]:
    """Have ``count`` processes count meanwhile."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _counts(text: str) -> list[int]:
    return [int(count) for count in text.split(",")]


def _head(other: str) -> tuple[str, ...]:
    first = ("model", "ours ms", f"{other} ms", "ratio", "quartiles", "best")
    return (*first, "start s", f"{other}'s", "MB", f"{other}'s")


def _rows(folder: Path, options: Any) -> Iterator[list[str]]:
    ratios: list[float] = []
    for model in models(folder, options.folders, options.only):
        for threads in options.threads:
            case = argparse.Namespace(**{**vars(options), "threads": threads})
            shown = f", {threads} threads" if len(options.threads) > 1 else ""
            try:
                row, ratio = _measured(model, folder, case)
            except RuntimeError as error:
                dashes = ("-" for _ in range(COLUMNS - 2))
                yield [f"{model.name}{shown}", f"{error}", *dashes]
                continue
            ratios.append(ratio)
            yield [f"{row[0]}{shown}", *row[1:]]
    if ratios:
        mean = exp(sum(map(log, ratios)) / len(ratios))
        yield [
            "geometric mean",
            "",
            "",
            f"{mean:.2f}",
            *("" for _ in range(COLUMNS - 4)),
        ]


def models(folder: Path, folders: list[str], only: str) -> Iterator[Model]:
    for name, write, feeds, batch in NETWORKS:
        if only in name:
            inside = folder / name.replace(" ", "_")
            inside.mkdir()
            yield Model(name, write(inside, batch), feeds(batch))
    for root in folders:
        for path in sorted(Path(root).rglob("*.onnx")):
            golden = path.with_name(f"{path.stem}.golden.npz")
            if only in path.stem and golden.exists():
                yield Model(path.stem, path, _recorded(path, golden))


def _recorded(path: Path, golden: Path) -> Feeds:
    """The recorded inputs in the order in which the model takes them."""
    import onnx

    graph = onnx.load(path, load_external_data=False).graph
    stored = {tensor.name for tensor in graph.initializer}
    names = [entry.name for entry in graph.input if entry.name not in stored]
    with np.load(golden) as file:
        return {name: file[f"in:{name}"] for name in names}


def written(model: Model, folder: Path) -> tuple[Any, Path, Path]:
    """The imported model, its module in a folder, and the file of its inputs."""
    folder.mkdir(parents=True, exist_ok=True)
    imported = import_model(model.path)
    module = folder / f"{module_stem(model.path)}.py"
    write_model(imported, module, force=True)
    inputs = folder / "inputs.npz"
    with inputs.open("wb") as file:
        np.savez(file, *model.feeds.values())
    return imported, module, inputs


def _measured(model: Model, folder: Path, options: Any) -> tuple[list[str], float]:
    """A row of the table, and the ratio."""
    compiled, module, inputs = written(model, folder / model.path.stem / "generated")
    ours = options.ours
    # A model that the other engine refuses is not measured.
    path = model.path
    if options.against == "onnxruntime-int8":
        path = quantized(path, model.feeds, module.parent)
    named = compiled.class_name
    path, name = (module, named) if options.against == "compiled" else (path, "")
    theirs = Worker(options.against, path, name, inputs, options)
    workers = [Worker(ours, module, named, inputs, options), theirs]
    close = max(CLOSE.get(name, 1e-4) for name in (ours, options.against))
    _compare(model, [worker.results for worker in workers], close)
    for _ in range(options.rounds):
        for worker in workers:
            sleep(PAUSE)
            worker.turn(TURN)
    memory = [worker.end() / 2**20 for worker in workers]
    own, other = (worker.rounds for worker in workers)
    each = [median(b) / median(a) for a, b in zip(own, other, strict=True)]
    low, middle, high = quantiles(each, n=4) if options.rounds > 1 else each * 3
    best = min(map(min, other)) / min(map(min, own))
    return [
        model.name,
        *(f"{1000 * median(map(median, result)):.2f}" for result in (own, other)),
        *(f"{middle:.2f}", f"{low:.2f} - {high:.2f}", f"{best:.2f}"),
        *(f"{worker.start:.2f}" for worker in workers),
        *(f"{size:.0f}" for size in memory),
    ], middle


def _compare(model: Model, results: list[list[Any]], close: float) -> None:
    """Raise unless both compute the same: a wrong result may not be quick."""
    for actual, expected in zip(*results, strict=True):
        scale = float(np.abs(expected).max(initial=1e-3))
        np.testing.assert_allclose(
            actual, expected, rtol=1e-3, atol=close * scale, err_msg=model.name
        )


if __name__ == "__main__":
    main()
