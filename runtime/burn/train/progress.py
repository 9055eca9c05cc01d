"""Progress on the terminal: a line for each epoch, and bars where rich is installed."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
from typing import Any, ClassVar

from burn.train.loggers import Logger, Run, Values
from burn.train.metrics import Batch
from burn.train.summary import summarize_history

#: Seconds between two drawings of the bars.
REFRESH = 0.1


class LineLogger(Logger):
    """Prints a line for each epoch, and why training ended and a summary after it."""

    shows_progress: ClassVar[bool] = True

    def __init__(self) -> None:
        self.history: list[Values] = []
        self._has_new_epochs = False
        #: Messages since the last epoch: an early end or an interruption.
        self._messages: list[str] = []

    def begin(self, run: Run) -> None:
        self.history, self._has_new_epochs = list(run.history), False
        self._messages = []

    def log_message(self, message: str) -> None:
        self._messages.append(message)

    def log_epoch(self, epoch: int, values: Values) -> None:
        self.history.append(values)
        self._has_new_epochs, self._messages = True, []
        self.print_line(f"epoch {epoch}  {format_values(values)}")

    def print_line(self, line: str) -> None:
        """Print a line of the ordinary output."""
        print(line, flush=True)

    def close(self) -> None:
        for message in self._messages:
            print(message, flush=True)
        if self._has_new_epochs:
            print(summarize_history(self.history), flush=True)
        self._has_new_epochs, self._messages = False, []


class BarLogger(LineLogger):
    """Shows bars of epochs and batches below the lines; needs rich.

    ``pip install 'burn-runtime[progress]'``. Bars are drawn at most ten times a second,
    between batches: there is no thread.
    """

    def __init__(self) -> None:
        try:
            self._rich: Any = importlib.import_module("rich.progress")
        except ImportError:
            raise ImportError(
                "BarLogger needs rich: pip install 'burn-runtime[progress]'"
            ) from None
        super().__init__()
        self._bars: Any = None
        self._last_refresh = 0.0

    def begin(self, run: Run) -> None:
        super().begin(run)
        self._run, rich = run, self._rich
        self._bars = rich.Progress(
            rich.TextColumn("{task.description}"),
            rich.BarColumn(),
            rich.MofNCompleteColumn(),
            rich.TimeRemainingColumn(),
            rich.TextColumn("{task.fields[values]}"),
            auto_refresh=False,
            transient=True,
        )
        done = len(run.history)
        self._epochs = self._bars.add_task("epochs", total=run.epochs, values="")
        self._bars.update(self._epochs, completed=done)
        self._batches = self._bars.add_task("train", total=None, values="")
        self._split = ""
        self._bars.start()

    def log_batch(
        self, split: str, epoch: int, number: int, batch: Batch, values: Values
    ) -> None:
        if split != self._split:
            self._split, total = split, self._run.batches.get(split)
            self._bars.reset(self._batches, total=total, description=split)
        now = time.monotonic()
        if now - self._last_refresh >= REFRESH:
            self._last_refresh = now
            text = format_values(values)
            self._bars.update(self._batches, completed=number, values=text)
            self._bars.refresh()

    def log_split(self, split: str, epoch: int) -> None:
        self._split = ""

    def log_epoch(self, epoch: int, values: Values) -> None:
        super().log_epoch(epoch, values)
        self._bars.update(self._epochs, completed=epoch)
        self._bars.refresh()

    def print_line(self, line: str) -> None:
        self._bars.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None
        super().close()


def create_progress_logger() -> Logger:
    """Return bars on a terminal where rich is installed, else lines."""
    has_rich = importlib.util.find_spec("rich") is not None
    return BarLogger() if has_rich and sys.stdout.isatty() else LineLogger()


def format_values(values: Values) -> str:
    """Return values as ``train/loss 0.25  train/accuracy 0.9``."""
    return "  ".join(f"{key} {value:.4g}" for key, value in values.items())
