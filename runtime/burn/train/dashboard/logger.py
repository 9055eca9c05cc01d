"""The logger that shows a dashboard."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections import deque
from typing import TYPE_CHECKING

from burn.train.loggers import Run, Values
from burn.train.metrics import Batch
from burn.train.progress import LineLogger

if TYPE_CHECKING:
    from burn.train.dashboard.viewer import Viewer

_LINES = "printing a line for each epoch"


class Dashboard(LineLogger):
    """Shows plots of all metrics, progress and messages on the whole terminal.

    ``q`` and Ctrl-C have the effect of Ctrl-C: training ends after the batch, and
    at once if they are pressed again.
    Output of the program appears among the messages, and on the ordinary
    screen when the dashboard closes, with the summary.

    Where standard input and output are no terminal a line is printed for each epoch.
    Needs textual and a POSIX system: ``pip install 'burn-runtime[tui]'``.

    Raises:
        ImportError: textual or textual-plotext is not installed.
    """

    def __init__(self) -> None:
        super().__init__()
        for name in ("textual", "textual_plotext"):
            if importlib.util.find_spec(name) is None:
                raise ImportError(
                    f"Dashboard needs {name}: pip install 'burn-runtime[tui]'"
                )
        self._viewer: Viewer | None = None
        #: The last lines that were not printed, for a viewer that ends too early.
        self._lines: deque[str] = deque(maxlen=64)

    def begin(self, run: Run) -> None:
        super().begin(run)
        obstacle = _find_obstacle()
        if obstacle is not None:
            _explain(f"{obstacle}; {_LINES}")
            return
        # It needs termios, which only POSIX systems have.
        from burn.train.dashboard.viewer import Viewer

        self._viewer = Viewer()
        resumed = run.resumed_from.name if run.resumed_from else None
        details = {
            "folder": str(run.folder),
            "epochs": run.epochs,
            "history": self.history,
            "batches_done": run.batches_done,
            "batches": dict(run.batches),
            "resumed_from": resumed,
        }
        self._send("begin", details, time.monotonic())

    def log_batch(
        self, split: str, epoch: int, number: int, batch: Batch, values: Values
    ) -> None:
        position = (split, epoch, number, time.monotonic())
        self._send("batch", *position, batch.size, batch.lr, dict(values))
        self._check_viewer()

    def log_epoch(self, epoch: int, values: Values) -> None:
        super().log_epoch(epoch, values)
        self._send("epoch", epoch, time.monotonic(), dict(values))

    def log_message(self, message: str) -> None:
        super().log_message(message)
        self._send("message", message)

    def print_line(self, line: str) -> None:
        if self._viewer is None:
            super().print_line(line)
        else:
            self._lines.append(line)

    def close(self) -> None:
        self._close_viewer("")
        super().close()

    def _send(self, *event: object) -> None:
        if self._viewer is not None:
            self._viewer.send(event)

    def _check_viewer(self) -> None:
        """Give up on a viewer that has ended; training goes on."""
        if self._viewer is not None and self._viewer.is_gone:
            self._close_viewer(f"; {_LINES}")

    def _close_viewer(self, consequence: str) -> None:
        """Wait for the viewer; print the lines that it may not have shown."""
        if self._viewer is None:
            return
        self._viewer.close()
        status, self._viewer = self._viewer.status, None
        if status or consequence:
            _explain(f"its process ended with status {status}{consequence}")
            for line in self._lines:
                super().print_line(line)
        self._lines.clear()


def _explain(reason: str) -> None:
    print(f"Dashboard: {reason}", file=sys.stderr, flush=True)


def _find_obstacle() -> str | None:
    """Return why no dashboard can be shown, None if it can."""
    if os.name != "posix":
        return "it needs a POSIX system"
    is_terminal = os.isatty(0) and os.isatty(1)
    return None if is_terminal else "standard input and output are no terminal"
