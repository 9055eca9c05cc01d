"""Measures device memory: inference beside PyTorch, and repeated compilation.

    python -m benchmarks.gpu_memory [--network resnet50] [--batch 64]
                                    [--precision float16] [--cycles 1000]
                                    [--folder FOLDER]

Each engine runs in a process of its own. ``used`` is what the device has less than
before the process started, in MiB: the context and the kernels of libraries are part of
it. ``arrays`` is what the allocator of the engine holds for arrays, weights included.
``eager`` and ``compiled`` are `burn`, ``torch`` and ``reduce-overhead`` PyTorch.

``--cycles`` compiles a small network, runs it until it is a CUDA graph, and releases
it, so many times. The table says what the device has less after some of the cycles.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.cases import print_table

ENGINES = ("eager", "compiled", "torch", "reduce-overhead")
MIB = 1 << 20
CALLS = 6
#: Cycles after which the caches of libraries and of the allocator are full.
WARM = 20


def free() -> int:
    """The bytes of the first device that no process uses."""
    import cupy

    return int(cupy.cuda.runtime.memGetInfo()[0])


def used_by(engine: str, options: Any) -> dict[str, Any]:
    """The memory of a process that computes a network some times."""
    import torch

    from benchmarks.gpu import OURS, engine as prepared
    from benchmarks.gpu_networks import network

    before = options.free
    with torch.no_grad():
        net, x = network(options.network, options.batch)
        each = prepared(
            engine, (options.network, options.batch, options.precision), net, x, options
        )
        for _ in range(CALLS):
            each.call()
        torch.cuda.synchronize() if engine not in OURS else None
        used = before - free()
    if engine in OURS:
        import cupy

        arrays = cupy.get_default_memory_pool().total_bytes()
    else:
        arrays = torch.cuda.memory_reserved()
    return {"engine": engine, "used": used / MIB, "arrays": arrays / MIB}


def cycles(count: int) -> Iterator[tuple[int, float]]:
    """Cycles and the MiB that the device has less than after the first ones."""
    import cupy

    import burn
    from burn import nn, ops

    device = burn.Cuda(0)

    class Small(nn.Module):
        """A convolution, a norm and a product."""

        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 32, 3, padding=1)
            self.norm = nn.BatchNorm2d(32)
            self.head = nn.Linear(32, 10)

        def __call__(self, x: Any) -> Any:
            y = ops.relu(self.norm(self.conv(x)))
            return ops.softmax(self.head(y.mean((2, 3))), axis=-1)

    model = Small().to(device).valid()
    x = burn.from_numpy(np.ones((8, 3, 32, 32), np.float32), device)
    start = 0
    for number in range(1, count + 1):
        run = burn.compile(model)
        for _ in range(4):
            run(x).numpy()
        assert getattr(run.executables[0], "kernels", None), run.notes
        del run
        gc.collect()
        if number == WARM:
            cupy.get_default_memory_pool().free_all_blocks()
            start = free()
        if number in (WARM, count // 4, count // 2, count):
            cupy.get_default_memory_pool().free_all_blocks()
            yield number, (start - free()) / MIB


def child(arguments: list[str]) -> dict[str, Any]:
    """The facts that a process of this program prints."""
    command = [sys.executable, "-m", "benchmarks.gpu_memory", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        return {"engine": arguments[-1], "failed": done.returncode}
    return dict(json.loads(lines[-1]))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Measures memory of a GPU.")
    parser.add_argument("--network", default="resnet50")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--precision", default="float16", choices=("float16", "tf32"))
    parser.add_argument("--engines", nargs="*", default=ENGINES, choices=ENGINES)
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--folder", type=Path, help="folder of imported networks")
    parser.add_argument("--free", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--engine", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.check = False
    if options.engine:
        print(json.dumps(used_by(options.engine, options)))
        return
    with TemporaryDirectory() as name:
        options.folder = options.folder or Path(name)
        options.folder.mkdir(parents=True, exist_ok=True)
        shared = [
            *("--network", options.network, "--batch", str(options.batch)),
            *("--precision", options.precision, "--folder", str(options.folder)),
        ]
        rows = []
        for engine in options.engines:
            row = child([*shared, "--free", str(free()), "--engine", engine])
            cells = [
                f"{row[key]:.0f}" if key in row else "failed"
                for key in ("used", "arrays")
            ]
            rows.append([engine, *cells])
        print_table(("engine", "used", "arrays"), rows)
    if options.cycles:
        rows = [[str(n), f"{more:.1f}"] for n, more in cycles(options.cycles)]
        print_table(("cycles", "MiB more"), rows)


if __name__ == "__main__":
    main()
