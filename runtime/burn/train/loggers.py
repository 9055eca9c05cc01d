"""Loggers, which receive the values of metrics from a learner."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from burn.train.metrics import Batch

Values = Mapping[str, float]


@dataclass(frozen=True)
class Run:
    """The description of a run that loggers get before the first batch.

    Args:
        folder: where artifacts go.
        epochs: the number of the last epoch, unless training ends early.
        history: the values of the epochs that earlier runs did.
        batches_done: those for training of the next epoch that an earlier run did.
        batches: the batches of an epoch by split, None where they have no ``len``.
        resumed_from: the checkpoint that training goes on from.
    """

    folder: Path
    epochs: int
    history: Sequence[Values]
    batches_done: int
    batches: Mapping[str, int | None]
    resumed_from: Path | None


class Logger:
    """Receives values of metrics; a subclass overrides some methods.

    ``split`` is ``"train"`` or ``"valid"``; epochs and batches count from 1. ``values``
    of a batch have the names of metrics, those of an epoch have keys such as
    ``"valid/loss"``. A metric without a value for one batch is left out of it.
    """

    #: Whether it shows progress on the terminal, so that the learner does not.
    shows_progress: ClassVar[bool] = False

    def begin(self, run: Run) -> None:
        """Start logging a run."""

    def log_batch(
        self, split: str, epoch: int, number: int, batch: Batch, values: Values
    ) -> None:
        """Log the finished batch ``number`` of the split."""

    def log_split(self, split: str, epoch: int) -> None:
        """Log the end of the split, or an interruption of training."""

    def log_epoch(self, epoch: int, values: Values) -> None:
        """Log the end of an epoch; the checkpoint is written."""

    def log_message(self, message: str) -> None:
        """Log a message about checkpoints, or that training ends early."""

    def close(self) -> None:
        """Stop logging; called at the end of training, also after an error."""


class FileLogger(Logger):
    """Writes ``<split>/epoch-<n>/<metric>.log`` with the value of each batch a line."""

    def __init__(self) -> None:
        self._folder = Path()
        self._lines: dict[str, list[str]] = {}
        #: The split and epoch whose first batches an earlier run wrote.
        self._continued: tuple[str, int] | None = None

    def begin(self, run: Run) -> None:
        self._folder, self._lines = run.folder, {}
        next_epoch = len(run.history) + 1
        self._continued = ("train", next_epoch) if run.batches_done else None

    def log_batch(
        self, split: str, epoch: int, number: int, batch: Batch, values: Values
    ) -> None:
        for name, value in values.items():
            self._lines.setdefault(name, []).append(f"{value}\n")

    def log_split(self, split: str, epoch: int) -> None:
        folder = self._folder / split / f"epoch-{epoch}"
        folder.mkdir(parents=True, exist_ok=True)
        mode = "a" if (split, epoch) == self._continued else "w"
        for name, lines in self._lines.items():
            with (folder / f"{name}.log").open(mode, encoding="utf-8") as file:
                file.writelines(lines)
        self._lines = {}


class MemoryLogger(Logger):
    """Keeps values in lists, for notebooks and tests.

    ``batches["train/loss"]`` has a value for each batch since the logger was made,
    ``epochs["valid/loss"]`` one for each epoch.
    """

    def __init__(self) -> None:
        self.batches: dict[str, list[float]] = {}
        self.epochs: dict[str, list[float]] = {}

    def log_batch(
        self, split: str, epoch: int, number: int, batch: Batch, values: Values
    ) -> None:
        for name, value in values.items():
            self.batches.setdefault(f"{split}/{name}", []).append(value)

    def log_epoch(self, epoch: int, values: Values) -> None:
        for key, value in values.items():
            self.epochs.setdefault(key, []).append(value)


class TensorBoardLogger(Logger):
    """Writes event files for TensorBoard into ``<folder>/tensorboard``.

    Scalars of batches are ``batch/train/loss``, by the number of the batch since the
    first epoch of this process; those of epochs are ``train/loss``, by epoch. Needs
    tensorboardX: ``pip install 'burn-runtime[tensorboard]'``.
    """

    def __init__(self) -> None:
        try:
            self._module: Any = importlib.import_module("tensorboardX")
        except ImportError:
            raise ImportError(
                "TensorBoardLogger needs tensorboardX: "
                "pip install 'burn-runtime[tensorboard]'"
            ) from None
        self._writer: Any = None
        self._counts: dict[str, int] = {}

    def begin(self, run: Run) -> None:
        self._writer = self._module.SummaryWriter(str(run.folder / "tensorboard"))

    def log_batch(
        self, split: str, epoch: int, number: int, batch: Batch, values: Values
    ) -> None:
        count = self._counts[split] = self._counts.get(split, 0) + 1
        for name, value in values.items():
            self._writer.add_scalar(f"batch/{split}/{name}", value, count)

    def log_epoch(self, epoch: int, values: Values) -> None:
        for key, value in values.items():
            self._writer.add_scalar(key, value, epoch)
        self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
