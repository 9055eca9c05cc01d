"""Trains with a dashboard: ``python -m tests.runtime.train.dashboard_job FOLDER MODE``.

Modes:
    wait: waits within the second epoch until ``FOLDER/go`` exists.
    error: as ``wait``, and then raises ValueError.
    first: waits after the first batch, and trains until it is interrupted.
    endless: trains until it is interrupted, with short batches.
    bars: two epochs with the bars of rich instead of the dashboard.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from burn import train
from tests.runtime.train.test_interruption import loader
from tests.runtime.train.test_learner import learner

#: The split, epoch and batch that wait.
GATE = ("train", 2, 3)


class Gate(train.Logger):
    """Delays or ends batches, as the mode says."""

    def __init__(self, folder: Path, mode: str) -> None:
        self.go, self.mode = folder / "go", mode

    def log_batch(
        self, split: str, epoch: int, number: int, batch: Any, values: Any
    ) -> None:
        if self.mode == "bars":
            return
        if self.mode == "endless":
            time.sleep(0.01)
        elif self.mode == "first" or (split, epoch, number) == GATE:
            print("printed [within] an epoch")
            os.write(2, b"written to standard error\n")
            while not self.go.exists():
                time.sleep(0.01)
            if self.mode == "error":
                raise ValueError("the batch is damaged")


def main(folder: Path, mode: str) -> None:
    """Train in ``folder``."""
    print("printed before training")
    gate = Gate(folder, mode)
    dashboard = [] if mode == "bars" else [train.Dashboard()]
    each = learner(folder, loggers=[*dashboard, gate])
    epochs = 10**6 if mode in ("endless", "first") else 2
    each.fit(loader(), loader(None), epochs=epochs, resume=True)
    print("printed after training")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
