"""Measures what :class:`burn.train.Learner` adds to steps of ResNet-18.

    python -m benchmarks.learner [--rounds 11] [--steps 8] [--batch 8]
                                 [--processor]

An epoch by a learner with metrics and files of logs, and a plain loop over the same
compiled step, take turns. Checkpoints, one an epoch, are not counted.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import burn
from benchmarks.training_ours import ResNet18
from burn import Autodiff, Cpu, loss, optim, train
from burn.train.metrics import Accuracy, LearningRate, Loss, Throughput


class Alternating:
    """Batches for a learner; before each epoch a plain loop over them is measured."""

    def __init__(
        self, step: Any, batches: Sequence[Any], clock: Callable[[], float]
    ) -> None:
        self.step, self.batches, self.clock = step, batches, clock
        self.loops, self.epochs = list[float](), list[float]()

    def __iter__(self) -> Iterator[Any]:
        start = self.clock()
        for batch in self.batches:
            self.step(*batch)
        middle = self.clock()
        yield from self.batches
        self.loops.append((middle - start) / len(self.batches))
        self.epochs.append((self.clock() - middle) / len(self.batches))


def main() -> None:
    """Print the time of a step by a loop and by a learner, and of a checkpoint."""
    parser = argparse.ArgumentParser()
    for option, default in (("rounds", 11), ("steps", 8), ("batch", 8)):
        parser.add_argument(f"--{option}", type=int, default=default)
    parser.add_argument("--processor", action="store_true")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    x = rng.standard_normal((options.batch, 3, 224, 224), np.float32)
    batch = (burn.from_numpy(x), burn.from_numpy(rng.integers(0, 1000, options.batch)))
    model = ResNet18().to(Autodiff(Cpu()))
    opt = optim.SGD(model, lr=1e-3, momentum=0.9)

    @train.step(model, opt)
    def step(x: Any, y: Any) -> train.Classified:
        logits = model(x)
        return train.Classified(loss.cross_entropy(logits, y), logits, y)

    step(*batch)
    clock = process_time if options.processor else perf_counter
    batches = Alternating(step, [batch] * options.steps, clock)
    metrics = [Loss(), Accuracy(), LearningRate(), Throughput()]
    with tempfile.TemporaryDirectory() as name:
        learner = train.Learner(Path(name), step, metrics=metrics, progress=False)
        learner.fit(batches, epochs=options.rounds)
    loops, epochs = np.array(batches.loops), np.array(batches.epochs)
    for label, times in (("loop", loops), ("learner", epochs)):
        median, least = 1e3 * np.median(times), 1e3 * times.min()
        print(f"a step by a {label}: median {median:.2f} ms, least {least:.2f} ms")
    print(f"median of the ratios: {np.median(epochs / loops) - 1:+.2%}")
    print(f"ratio of the least:   {epochs.min() / loops.min() - 1:+.2%}")


if __name__ == "__main__":
    main()
