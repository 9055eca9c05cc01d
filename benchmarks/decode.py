"""Measures tokens per second of decoders on a CUDA device beside ``torch.compile``.

    python -m benchmarks.decode [--networks gpt2 llama] [--batches 1 8]
                                [--engines burn torch] [--prompt 128] [--count 256]
                                [--rounds 5] [--folder FOLDER]

GPT-2 (124M) and Llama 3.2 (1B) with random weights in float16 take a prompt and then
choose the most probable token, step after step. ``burn`` is a
:class:`burn.generation.Decoder`, ``torch`` a step with a cache of the same capacity in
``torch.compile(mode="reduce-overhead")``. Tokens stay on the device; the clock stops
when the last one is there. Engines are prepared at the same time, in a process each,
and take turns to measure.

The bound is the time in which memory gives the weights and the cache of one step, at
``--bandwidth``. ``error`` is the largest difference of logits from PyTorch's in
float32, relative to the largest one.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic, perf_counter, sleep
from typing import Any

import numpy as np

from benchmarks.cases import print_table
from benchmarks.decode_networks import (
    GPT2,
    LLAMA,
    Gpt2,
    Llama,
    Sizes,
    numbers,
    with_cache,
)

NETWORKS: dict[str, tuple[Any, Sizes]] = {
    "gpt2": (Gpt2, GPT2),
    "llama": (Llama, LLAMA),
}
ENGINES = ("burn", "torch")
HEAD = ("network", "batch", "engine", "tokens/s", "us a step", "of the bound", "error")
CAPACITY = 1024
#: Seconds that engines may take to get ready.
PATIENCE = 100.0
#: Tokens after the prompt whose logits are compared.
COMPARED = 4


def prompt_of(sizes: Sizes, batch: int, count: int) -> np.ndarray[Any, Any]:
    """Random tokens of a prompt, and some after it."""
    rng = np.random.default_rng(batch)
    return rng.integers(0, sizes.words, (batch, count + COMPARED))


def burn_engine(options: Any) -> tuple[Callable[[], None], dict[str, Any], Any]:
    """A function that decodes, facts about it, and logits."""
    import burn
    from burn.generation import Decoder

    kind, sizes = NETWORKS[options.network]
    device = burn.Cuda(0)
    module = with_cache(kind, sizes)
    facts: dict[str, Any] = {"bytes": numbers(module)}
    decoder = Decoder(module.to(device), batch=options.batch, capacity=CAPACITY)
    given = prompt_of(sizes, options.batch, options.prompt)
    prompt = burn.from_numpy(given[:, : options.prompt], device)
    logits = [decoder(prompt)[:, -1:].numpy()]
    for number in range(COMPARED):
        at = options.prompt + number
        token = burn.from_numpy(given[:, at : at + 1].copy(), device)
        logits.append(decoder(token).numpy())

    def run() -> None:
        decoder.reset()
        chosen = burn.ops.argmax(decoder(prompt)[:, -1:], -1)
        chosen.numpy()
        start = perf_counter()
        for _ in range(options.count):
            chosen = decoder.next(chosen)
        facts["host"] = (perf_counter() - start) / options.count
        chosen.numpy()
        facts["step"] = (perf_counter() - start) / options.count

    for _ in range(2):
        run()
    facts["notes"] = decoder.notes
    facts["kernels"] = [getattr(e, "kernels", None) for e in decoder.executables]
    return run, facts, np.concatenate(logits, 1)


def torch_engine(options: Any) -> tuple[Callable[[], None], dict[str, Any], Any]:
    """A function that decodes, facts about it, and the logits in float32."""
    import torch

    from benchmarks.decode_torch import Model, next_token

    kind, sizes = NETWORKS[options.network]
    module = with_cache(kind, sizes)
    facts: dict[str, Any] = {"bytes": numbers(module)}
    given = torch.from_numpy(prompt_of(sizes, options.batch, options.prompt)).cuda()
    place = torch.arange(options.prompt + COMPARED, device="cuda")
    with torch.inference_mode():
        exact = Model(module, options.batch, CAPACITY, torch.float32).cuda()
        logits = exact(given, place)[:, options.prompt - 1 :].cpu().numpy()
        del exact
        model = Model(module, options.batch, CAPACITY, torch.float16).cuda()
        step = torch.compile(next_token, mode="reduce-overhead", fullgraph=True)

    def run() -> None:
        with torch.inference_mode():
            decode()

    def decode() -> None:
        first = place[: options.prompt]
        token = model(given[:, : options.prompt], first)[:, -1].argmax(-1, keepdim=True)
        at = place[options.prompt : options.prompt + 1].clone()
        torch.cuda.synchronize()
        start = perf_counter()
        for _ in range(options.count):
            torch.compiler.cudagraph_mark_step_begin()
            token, at = step(model, token.clone(), at.clone())
        facts["host"] = (perf_counter() - start) / options.count
        torch.cuda.synchronize()
        facts["step"] = (perf_counter() - start) / options.count

    for _ in range(3):
        run()
    return run, facts, logits


def trace(run: Callable[[], None], path: Path) -> None:
    """Write the kernels of the last step with their microseconds."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        run()
    events = [e for e in profiled.events() if e.device_time > 0]
    events.sort(key=lambda event: event.time_range.start)
    begin = events[-400:][0].time_range.start
    lines = [
        f"{e.time_range.start - begin:9.2f} {e.device_time:8.2f} {e.name[:150]}"
        for e in events[-400:]
    ]
    path.write_text("\n".join(lines))


def measure(options: Any) -> None:
    """Prepare an engine, wait for the turn, and write a row."""
    engine = {"burn": burn_engine, "torch": torch_engine}[options.engine]
    run, facts, logits = engine(options)
    stem = f"{options.network}_{options.batch}_{options.engine}"
    np.save(options.folder / f"{stem}.npy", logits)
    (options.folder / f"{stem}.ready").touch()
    while not (options.folder / "go").exists():
        sleep(0.05)
    steps, hosts = [], []
    for _ in range(options.rounds):
        with (options.folder / "go").open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            run()
        steps.append(facts["step"])
        hosts.append(facts["host"])
        sleep(0.02)
    row = {
        **{name: getattr(options, name) for name in ("network", "batch", "engine")},
        **facts,
        "step": median(steps),
        "host": median(hosts),
        "steps": steps,
    }
    (options.folder / f"{stem}.json").write_text(json.dumps(row))
    if options.trace:
        with (options.folder / "go").open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            trace(run, options.folder / f"{stem}.txt")


def start(options: Any) -> list[subprocess.Popen[bytes]]:
    """A process for each engine, network and batch."""
    shared = [
        *("--prompt", str(options.prompt), "--count", str(options.count)),
        *("--rounds", str(options.rounds), "--folder", str(options.folder)),
        *(["--trace"] if options.trace else []),
    ]
    processes = []
    for network in options.networks:
        for batch in options.batches:
            for engine in options.engines:
                mine = ["--network", network, "--batch", str(batch), "--engine", engine]
                command = [sys.executable, "-m", "benchmarks.decode", *mine, *shared]
                log = (options.folder / f"{network}_{batch}_{engine}.log").open("wb")
                processes.append(subprocess.Popen(command, stdout=log, stderr=log))
    return processes


def rows_of(options: Any) -> list[list[str]]:
    """The lines of the table."""
    rows = []
    for path in sorted(options.folder.glob("*.json")):
        row = json.loads(path.read_text())
        _, sizes = NETWORKS[row["network"]]
        entries = options.prompt + options.count / 2
        cache = 4 * sizes.layers * sizes.groups * sizes.size * entries * row["batch"]
        bound = (row["bytes"] + cache) / options.bandwidth
        ours = path.with_suffix(".npy")
        theirs = options.folder / f"{row['network']}_{row['batch']}_torch.npy"
        error = ""
        if row["engine"] == "burn" and theirs.exists():
            a, b = (np.load(p).astype(np.float64) for p in (ours, theirs))
            error = f"{np.abs(a - b).max() / np.abs(b).max():.1e}"
        step = row["step"]
        name = [row["network"], str(row["batch"]), row["engine"]]
        speed = [
            f"{row['batch'] / step:.0f}",
            f"{step * 1e6:.0f}",
            f"{bound / step:.2f}",
        ]
        rows.append([*name, *speed, error])
        print(json.dumps({k: v for k, v in row.items() if k != "steps"}))
    return rows


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description="Measures decoders on a GPU.")
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS))
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--engines", nargs="+", default=list(ENGINES))
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--count", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--bandwidth", type=float, default=3.35e12, help="bytes/s")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--trace", action="store_true", help="write kernels of steps")
    for name, kind in (("network", str), ("batch", int), ("engine", str)):
        parser.add_argument(f"--{name}", type=kind, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.engine:
        measure(options)
        return
    with TemporaryDirectory() as folder:
        options.folder = options.folder or Path(folder)
        options.folder.mkdir(parents=True, exist_ok=True)
        processes = start(options)
        began = monotonic()
        while monotonic() - began < PATIENCE:
            ready = len(list(options.folder.glob("*.ready")))
            alive = sum(p.poll() is None for p in processes)
            if not alive or ready == alive:
                break
            sleep(0.1)
        print(f"ready after {monotonic() - began:.0f} s")
        (options.folder / "go").touch()
        for process in processes:
            process.wait()
        print_table(HEAD, rows_of(options))


if __name__ == "__main__":
    main()
