"""Training that is interrupted within an epoch goes on as if it had not been."""

import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn import data, train
from burn.train.metrics import AUROC, Accuracy, FBeta, Loss, Metric
from tests.runtime.train.test_learner import Shuffled, learner


class Stopping(train.Logger):
    """Interrupts after a batch of a split, as Ctrl-C does."""

    def __init__(self, split: str, epoch: int, batch: int) -> None:
        self.position = (split, epoch, batch)
        self.learner: train.Learner | None = None

    def log_batch(
        self, split: str, epoch: int, number: int, batch: Any, values: Any
    ) -> None:
        if (split, epoch, number) == self.position:
            assert self.learner is not None
            self.learner.interrupt()


def loader(shuffle: int | None = 3) -> data.Loader:
    pairs = Shuffled()
    return data.Loader(data.Memory(pairs.x, pairs.y), batch=8, shuffle=shuffle)


def metrics() -> list[Metric]:
    return [Loss(), Accuracy(), FBeta(3), AUROC()]


@pytest.mark.parametrize("accumulate", [1, 4])
@pytest.mark.parametrize(
    "position",
    [
        ("train", 1, 2),
        ("train", 2, 1),
        ("train", 2, 6),
        ("valid", 1, 2),
        ("valid", 2, 6),
    ],
)
@pytest.mark.sampled(4)
def test_it_goes_on_within_the_epoch(
    tmp_path: Path, accumulate: int, position: tuple[str, int, int]
) -> None:
    options: dict[str, Any] = {"progress": False}
    whole = learner(tmp_path / "a", accumulate, metrics=metrics(), **options)
    expected = whole.fit(loader(), loader(None), epochs=3)
    stopping = Stopping(*position)
    options["loggers"] = [stopping]
    stopping.learner = learner(tmp_path / "b", accumulate, metrics=metrics(), **options)
    with pytest.raises(KeyboardInterrupt):
        stopping.learner.fit(loader(), loader(None), epochs=3)
    interrupted = tmp_path / "b" / "checkpoint" / "interrupted.safetensors"
    assert interrupted.exists()
    again = learner(tmp_path / "b", accumulate, metrics=metrics(), progress=False)
    with pytest.raises(ValueError, match="pass resume=True"):
        again.fit(loader(), loader(None), epochs=3)
    result = again.fit(loader(), loader(None), epochs=3, resume=True)
    assert not interrupted.exists()
    assert result.history == expected.history
    for name, value in expected.model.state_dict().items():
        np.testing.assert_array_equal(result.model.state_dict()[name].numpy(), value)
    for file in sorted((tmp_path / "a").rglob("*.log")):
        other = tmp_path / "b" / file.relative_to(tmp_path / "a")
        assert other.read_text() == file.read_text()


class Terminal(Stopping):
    """Sends an interrupt to the workers of a loader as well, as a terminal does."""

    def log_batch(
        self, split: str, epoch: int, number: int, batch: Any, values: Any
    ) -> None:
        if (split, epoch, number) == self.position:
            for process in multiprocessing.active_children():
                assert process.pid is not None
                os.kill(process.pid, signal.SIGINT)
        super().log_batch(split, epoch, number, batch, values)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_workers_leave_an_interrupt_to_the_learner(tmp_path: Path) -> None:
    pairs = data.Mapper(data.Memory(Shuffled().x, Shuffled().y), tuple)
    stopping = Terminal("train", 2, 2)
    stopping.learner = learner(tmp_path, progress=False, loggers=[stopping])
    with data.Loader(pairs, batch=8, shuffle=3, workers=1) as batches:
        with pytest.raises(KeyboardInterrupt):
            stopping.learner.fit(batches, epochs=3)
        assert (tmp_path / "checkpoint" / "interrupted.safetensors").exists()
        result = stopping.learner.fit(batches, epochs=3, resume=True)
    whole = learner(tmp_path / "whole", progress=False).fit(loader(), epochs=3)
    assert result.history == whole.history


def test_batches_without_a_position_start_the_epoch_again(tmp_path: Path) -> None:
    stopping = Stopping("train", 2, 3)
    each = learner(tmp_path, progress=False, loggers=[stopping])
    stopping.learner = each
    with pytest.raises(KeyboardInterrupt):
        each.fit(Shuffled(), epochs=3)
    assert [path.name for path in (tmp_path / "checkpoint").iterdir()] == [
        "checkpoint-1.safetensors"
    ]


def test_metrics_refuse_the_state_of_others() -> None:
    with pytest.raises(ValueError, match=r"metric loss: expected a state of \['count'"):
        Loss().load_state_dict({"confusion": []})
