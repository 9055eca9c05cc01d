"""Kills training at random points and loads what is left.

    python -m benchmarks.kills [--runs 200] [--seed 0] [--longest 0.2]

Each run goes on in the same folder from the newest checkpoint, and ends by SIGKILL at
a random time within ``longest`` seconds of its first epoch. Then the newest checkpoint
is loaded, and the number of its epochs compared with that in its name. Processes are
forked before anything is computed (POSIX only).
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from burn import Autodiff, Cpu, data, loss, nn, ops, optim, train
from burn.train.metrics import Accuracy, Loss


class Signal(train.Logger):
    """Writes to a pipe after the first epoch."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def log_epoch(self, epoch: int, values: Any) -> None:
        if self._pipe >= 0:
            os.write(self._pipe, b".")
        self._pipe = -1


def learner(folder: Path, loggers: Sequence[train.Logger] = ()) -> train.Learner:
    """Return a learner whose checkpoints of 6 MB take most of an epoch."""
    model = nn.Sequential(nn.Linear(64, 1024), ops.relu, nn.Linear(1024, 384))
    model.to(Autodiff(Cpu()))
    opt = optim.AdamW(model, lr=1e-3)

    @train.step(model, opt)
    def step(x: Any, y: Any) -> train.Classified:
        logits = model(x)
        return train.Classified(loss.cross_entropy(logits, y), logits, y)

    metrics = [Loss(), Accuracy()]
    keep = train.KeepLast(2)
    return train.Learner(
        *(folder, step),
        metrics=metrics,
        checkpoints=keep,
        loggers=loggers,
        progress=False,
    )


def loader() -> data.Loader:
    """Return four batches of 16."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 64), np.float32)
    return data.Loader(data.Memory(x, rng.integers(0, 384, 64)), batch=16, shuffle=1)


def go_on(folder: Path, pipe: int) -> None:
    """Train until the process is killed."""
    each = learner(folder, [Signal(pipe)])
    each.fit(loader(), epochs=1_000_000, resume=True)


def check(folder: Path) -> None:
    """Load the newest checkpoint; raise an error if it is damaged."""
    each = learner(folder)
    newest = max(each.stored(), default=0)
    each.fit(loader(), epochs=newest, resume=True)
    if len(each.history) != newest:
        raise ValueError(f"checkpoint {newest} has {len(each.history)} epochs")


def fork(function: Callable[[], None]) -> int:
    """Return the id of a new process that calls ``function`` and exits."""
    process = os.fork()
    if process:
        return process
    try:
        function()
        os._exit(0)
    finally:
        traceback.print_exc()
        os._exit(1)


def kill_one(folder: Path, delay: float) -> None:
    """Train in ``folder``, and kill the process ``delay`` seconds after an epoch."""
    reader, writer = os.pipe()
    process = fork(lambda: go_on(folder, writer))
    os.close(writer)
    os.read(reader, 1)
    os.close(reader)
    time.sleep(delay)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


def main() -> None:
    """Print how many of the runs left a checkpoint that could not be loaded."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=float, default=0.2)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    damaged = torn = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for _ in range(options.runs):
            kill_one(folder, rng.uniform(0.0, options.longest))
            torn += any((folder / "checkpoint").glob(".*.tmp"))
            _, status = os.waitpid(fork(lambda: check(folder)), 0)
            damaged += status != 0
        stored = sorted(path.name for path in (folder / "checkpoint").iterdir())
    print(f"{options.runs} runs, {torn} killed while a file was written")
    print(f"{damaged} left a checkpoint that cannot be loaded; the last is {stored}")


if __name__ == "__main__":
    main()
