"""Loggers get the values of batches and epochs, and are closed in the end."""

import math
from pathlib import Path
from typing import Any

import pytest
from tensorboardX.proto.event_pb2 import Event

from burn.train import Logger, MemoryLogger, Run, TensorBoardLogger
from burn.train.metrics import Batch, Loss, Throughput
from tests.runtime.train.test_learner import Shuffled, learner


class Recorder(Logger):
    """Notes which calls come, in order."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.sizes: list[int] = []

    def begin(self, run: Run) -> None:
        self.calls.append(("begin", len(run.history), run.batches_done, run.batches))

    def log_batch(
        self, split: str, epoch: int, number: int, batch: Batch, values: Any
    ) -> None:
        self.sizes.append(batch.size)
        self.calls.append((split, epoch, number, list(values)))

    def log_split(self, split: str, epoch: int) -> None:
        self.calls.append((split, epoch))

    def log_epoch(self, epoch: int, values: Any) -> None:
        self.calls.append((epoch, list(values)))

    def close(self) -> None:
        self.calls.append("close")


def test_calls_come_in_order(tmp_path: Path) -> None:
    recorder, memory = Recorder(), MemoryLogger()
    valid = [(Shuffled().x, Shuffled().y)]
    options: dict[str, Any] = {"loggers": [recorder, memory], "progress": False}
    options["metrics"] = [Loss(), Throughput()]
    learner(tmp_path, **options).fit(Shuffled(), valid, epochs=1)
    learner(tmp_path, **options).fit(Shuffled(), valid, epochs=2, resume=True)
    keys = [
        f"{split}/{name}"
        for split in ("train", "valid")
        for name in ("loss", "samples_per_second")
    ]

    def epoch(number: int) -> list[Any]:
        return [
            ("train", number, 1, ["loss"]),
            *(
                ("train", number, i, ["loss", "samples_per_second"])
                for i in range(2, 7)
            ),
            ("train", number),
            ("valid", number, 1, ["loss"]),
            ("valid", number),
            (number, keys),
            "close",
        ]

    splits = {"train": None, "valid": 1}
    assert recorder.calls == [
        *[("begin", 0, 0, splits), *epoch(1)],
        *[("begin", 1, 0, splits), *epoch(2)],
    ]
    assert recorder.sizes == 2 * [8, 8, 8, 8, 8, 4, 44]
    assert list(memory.epochs) == keys
    assert [len(values) for values in memory.epochs.values()] == [2, 2, 2, 2]
    assert len(memory.batches["train/loss"]) == 12
    assert math.isnan(memory.epochs["valid/samples_per_second"][0])


def test_loggers_are_closed_after_an_error(tmp_path: Path) -> None:
    recorder = Recorder()
    with pytest.raises(ValueError, match="at least one train batch"):
        learner(tmp_path, loggers=[recorder]).fit([], epochs=1)
    assert recorder.calls == [("begin", 0, 0, {"train": 0}), "close"]


def test_event_files(tmp_path: Path) -> None:
    learner(tmp_path, loggers=[TensorBoardLogger()]).fit(Shuffled(), epochs=2)
    (file,) = (tmp_path / "tensorboard").iterdir()
    data, tags = file.read_bytes(), []
    while data:
        size = int.from_bytes(data[:8], "little")
        event = Event.FromString(data[12 : 12 + size])
        tags += [(value.tag, event.step) for value in event.summary.value]
        data = data[16 + size :]
    assert ("train/loss", 2) in tags
    assert ("batch/train/accuracy", 12) in tags
    assert len(tags) == 2 * 3 + 12 * 3
