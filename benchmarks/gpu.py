"""Measures inference on a CUDA device: `burn`, PyTorch eager and `torch.compile`.

    python -m benchmarks.gpu [--networks resnet50 bert] [--batches 1 8]
                             [--precisions tf32 float16] [--engines compiled torch]
                             [--rounds 5] [--rows FILE] [--folder FOLDER] [--prepare]
                             [--traces FOLDER] [--profile LINES] [--check] [--go FILE]

The networks are torchvision's and transformers', with random weights, exported with
``torch.export`` and imported. Engines take turns in one process; a time is the median
over the rounds of the wall time of a call, with the device synchronized after a series
of calls. The error is the largest difference from PyTorch in float64, relative to the
largest element. ``reduce-overhead`` and ``max-autotune`` are modes of
``torch.compile``. In the table at the end ``torch.compile`` is the better of those that
were measured, and the last column its time divided by that of ``compiled``.

``--rows`` is a file to which measurements are appended, and whose are not repeated.
With ``--go`` a process measures once that file exists, and after others that wait for
it as well: engines can be prepared at the same time. It makes a file beside it, with
its process id, when it is ready.
Imported networks are kept in ``--folder``; ``--prepare`` imports them and measures
nothing. ``--traces`` writes the kernels of a call with their times to a folder. With
``--check`` every fused kernel is compared with its parts, and the first one that
differs by more than a thousandth is printed with its step.
"""

from __future__ import annotations

import argparse
import cProfile
import fcntl
import json
import os
import pstats
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from math import exp, log
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, sleep
from typing import Any

import numpy as np

import burn
from benchmarks.cases import print_table
from benchmarks.gpu_networks import exact, imported, network, networks, prepared

OURS = ("eager", "compiled")
MODES = ("reduce-overhead", "max-autotune")
ENGINES = (*OURS, "torch", *MODES)
PRECISIONS = ("tf32", "float16")
HEAD = (
    *("network", "batch", "precision", "compiled", "kernels", "error"),
    *("PyTorch eager", "torch.compile", "error there", "ratio"),
)
#: Seconds of one turn of an engine.
TURN = 0.1
WARM_UP = 3
#: What engines raise where they cannot compute a network.
ERRORS = (RuntimeError, ValueError, TypeError, LookupError, NotImplementedError)

Row = dict[str, Any]
Key = tuple[str, int, str]


@dataclass
class Engine:
    """A function of no arguments that computes once, and its times."""

    name: str
    call: Callable[[], Any]
    result: Any
    kernels: int | None = None
    wall: list[float] = field(default_factory=list)
    host: list[float] = field(default_factory=list)


def engine(name: str, key: Key, net: Any, x: Any, options: Any) -> Engine:
    """An engine for a network, after its first calls."""
    import torch

    network_name, _, precision = key
    half, tf32 = precision == "float16", precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    x = x.half() if half and x.is_floating_point() else x
    if name in OURS:
        burn.Cuda(0).tf32 = tf32
        dtype = "float16" if half else None
        module = imported(network_name, dtype, options.folder)
        return _ours(name, module, burn.from_numpy(x.numpy(), burn.Cuda(0)), options)
    theirs = deepcopy(net).cuda()
    theirs, there = theirs.half() if half else theirs, x.cuda()
    call = torch.inference_mode()(theirs)
    if name in MODES:
        torch._dynamo.reset()
        call = torch.compile(theirs, mode=name)
    return Engine(name, partial(call, there), call(there).cpu().numpy())


def _ours(name: str, module: Any, given: Any, options: Any) -> Engine:
    call = module if name == "eager" else burn.compile(module)
    for _ in range(WARM_UP):  # the first call of a compiled module records
        result = call(given)
    for note in getattr(call, "notes", ()):
        print(f"{name}: {note}")
    ours = Engine(name, partial(call, given), result.numpy())
    for executable in getattr(call, "executables", ()):
        ours.kernels = getattr(executable, "kernels", None)
        if options.check:
            _check(executable, given)
    return ours


def _check(executable: Any, given: Any) -> None:
    """Print how far fused kernels are from their parts."""
    steps = list(executable.compared([given.data]))
    worst = max((error for _, _, error in steps), default=0.0)
    print(f"{len(steps)} fused steps, at most {worst:.1e} from their parts")
    for number, step, error in steps:
        if not error <= 1e-3:
            name, shape = step.primitive.name, list(step.shapes[0])
            print(f"first above 1e-3: step {number}, {name} {shape}: {error:.1e}")
            print(f"  {step.static}")
            break


def measure(engines: list[Engine], rounds: int) -> None:
    """Let the engines take turns."""
    import torch

    for each in engines:
        for _ in range(WARM_UP):
            each.call()
    torch.cuda.synchronize()
    for _ in range(rounds):
        for each in engines:
            start = perf_counter()
            each.call()
            torch.cuda.synchronize()
            count = max(3, int(TURN / (perf_counter() - start)))
            start = perf_counter()
            for _ in range(count):
                each.call()
            each.host.append((perf_counter() - start) / count)
            torch.cuda.synchronize()
            each.wall.append((perf_counter() - start) / count)


def trace(each: Engine, path: Path) -> None:
    """Write the kernels of one call in their order, with their microseconds."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for _ in range(2):
            each.call()
    events = [e for e in profiled.events() if e.device_time > 0]
    events.sort(key=lambda event: event.time_range.start)
    last = events[len(events) // 2 :]
    lines = [f"{event.device_time:9.2f} {event.name}" for event in last]
    total = sum(event.device_time for event in last)
    path.write_text("\n".join([*lines, f"{total:9.2f} in {len(last)} kernels", ""]))


@contextmanager
def turn(path: Path | None) -> Iterator[None]:
    """Wait until ``path`` exists, and for all others that hold it."""
    if path is None:
        yield
        return
    path.with_suffix(f".{os.getpid()}").touch()
    while not path.exists():
        sleep(0.05)
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def measured(key: Key, options: Any) -> Iterator[Row]:
    """The measurements of a network, one for each engine."""
    import torch

    name, batch, precision = key
    with torch.no_grad():
        net, x = network(name, batch)
        wanted = exact(net, x)
        head = {"network": name, "batch": batch, "precision": precision}
        head["device"] = torch.cuda.get_device_name()
        engines: list[Engine] = []
        for engine_name in options.engines:
            try:
                engines.append(engine(engine_name, key, net, x, options))
            except ERRORS as error:
                yield {**head, "engine": engine_name, "failed": repr(error)[:400]}
        torch.cuda.empty_cache()
        with turn(options.go):
            measure(engines, options.rounds)
        for each in engines:
            if options.traces:
                stem = f"{name}_b{batch}_{precision}_{each.name}"
                trace(each, options.traces / f"{stem}.txt")
            if options.profile and each.name in OURS:
                _profile(each, options.profile)
            worst = np.abs(each.result - wanted).max() / (np.abs(wanted).max() or 1)
            wall, host = (median(times) * 1e3 for times in (each.wall, each.host))
            row = {**head, "engine": each.name, "ms": wall, "host": host}
            yield {**row, "error": float(worst), "kernels": each.kernels}


def _profile(each: Engine, lines: int) -> None:
    profile = cProfile.Profile()
    for _ in range(10):
        profile.runcall(each.call)
    pstats.Stats(profile).sort_stats("tottime").print_stats(lines)


def complete(rows: list[Row], options: Any) -> list[Row]:
    """The rows with those of all networks that are wanted and not measured yet."""
    keys = [
        (name, batch, precision)
        for name in options.networks or networks()
        for batch in options.batches
        for precision in options.precisions
    ]
    for key in keys:
        have = {row["engine"] for row in rows if _key(row) == key}
        if have.issuperset(options.engines):
            continue
        rows = [row for row in rows if _key(row) != key]
        for row in measured(key, options):
            rows.append(row)
            print(json.dumps(row), flush=True)
            if options.rows:
                with options.rows.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    return rows


def _key(row: Row) -> Key:
    return row["network"], row["batch"], row["precision"]


def table(rows: list[Row]) -> Iterator[list[str]]:
    """The lines of the table: the last measurement of each engine counts."""
    by_key: dict[Key, dict[str, Row]] = {}
    for row in rows:
        by_key.setdefault(_key(row), {})[row["engine"]] = row
    ratios = []
    for (name, batch, precision), by_engine in by_key.items():
        good = {engine: row for engine, row in by_engine.items() if "ms" in row}
        ours, eager = good.get("compiled", {}), good.get("torch", {})
        modes = [good[mode] for mode in MODES if mode in good]
        best = min(modes, key=lambda row: float(row["ms"]), default={})
        ratio = best["ms"] / ours["ms"] if best and ours else None
        ratios += [ratio] if ratio else []
        yield [
            *(name, str(batch), precision, _number(ours.get("ms"), ".3f")),
            *(str(ours.get("kernels") or ""), _number(ours.get("error"), ".1e")),
            _number(eager.get("ms"), ".3f"),
            *(_number(best.get("ms"), ".3f"), _number(best.get("error"), ".1e")),
            _number(ratio, ".2f"),
        ]
    if ratios:
        mean = exp(sum(map(log, ratios)) / len(ratios))
        yield ["geometric mean", *[""] * (len(HEAD) - 2), f"{mean:.2f}"]


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def main() -> None:
    """Print a table of inference times on the first CUDA device."""
    parser = argparse.ArgumentParser(description="Measures inference on a GPU.")
    parser.add_argument("--networks", nargs="*", default=[])
    parser.add_argument("--batches", nargs="*", type=int, default=[1, 8, 64])
    parser.add_argument("--precisions", nargs="*", default=PRECISIONS)
    parser.add_argument("--engines", nargs="*", default=ENGINES, choices=ENGINES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=Path, help="file of measurements")
    parser.add_argument("--folder", type=Path, help="folder of imported networks")
    parser.add_argument("--prepare", action="store_true", help="import, do not measure")
    parser.add_argument("--traces", type=Path, help="folder of lists of kernels")
    parser.add_argument("--profile", type=int, default=0, help="lines of a profile")
    parser.add_argument("--go", type=Path, help="measure once this file exists")
    parser.add_argument("--check", action="store_true", help="compare fused kernels")
    warnings.simplefilter("once")
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        options.folder = options.folder or Path(name)
        for folder in filter(None, (options.folder, options.traces)):
            folder.mkdir(parents=True, exist_ok=True)
        if options.prepare:
            for network_name in options.networks or networks():
                for dtype in (None, "float16"):
                    prepared(network_name, dtype, options.folder)
            return
        rows: list[Row] = []
        if options.rows and options.rows.exists():
            rows = [json.loads(line) for line in options.rows.read_text().splitlines()]
        print_table(HEAD, table(complete(rows, options)))


if __name__ == "__main__":
    main()
