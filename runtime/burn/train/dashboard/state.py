"""The content of a dashboard, from the events of a run."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

#: Values of a metric: split, then pairs of a batch or an epoch and its value.
Series = dict[str, list[tuple[int, float]]]
#: Batches that the speed is the mean of.
WINDOW = 50


class RunState:
    """Values, progress and speed of a run, which :meth:`apply` updates.

    ``batches`` has the values of the running epoch by metric, ``epochs`` those of each
    epoch.
    """

    def __init__(self) -> None:
        self.folder = ""
        self.batches: dict[str, Series] = {}
        self.epochs: dict[str, Series] = {}
        self.messages: deque[str] = deque(maxlen=100)
        self.epoch_total = 0
        self.batch_totals: dict[str, int | None] = {}
        self.epochs_done = 0
        self.split, self.epoch, self.number = "train", 0, 0
        self.lr = math.nan
        self.is_closed = False
        self._times: deque[tuple[float, int]] = deque(maxlen=WINDOW)
        self._epoch_end = math.nan
        self._durations: list[float] = []

    def apply(self, event: list[Any]) -> None:
        """Update the state by an event of :class:`~burn.train.Dashboard`.

        Raises:
            ValueError: the event is unknown.
        """
        kind, *values = event
        handlers: dict[str, Callable[..., None]] = {
            "begin": self._begin,
            "batch": self._add_batch,
            "epoch": self._add_epoch,
            "message": self.messages.append,
            "close": self._close,
        }
        if kind not in handlers:
            raise ValueError(f"expected one of {', '.join(handlers)}, got {kind!r}")
        handlers[kind](*values)

    def _begin(self, run: Mapping[str, Any], seconds: float) -> None:
        self.folder = run["folder"]
        self.epoch_total, self.batch_totals = run["epochs"], run["batches"]
        for epoch, values in enumerate(run["history"], 1):
            self._extend_epochs(epoch, values)
        self.epochs_done = len(run["history"])
        self.epoch, self.number = self.epochs_done + 1, run["batches_done"]
        self._epoch_end = seconds
        if run["resumed_from"]:
            self.messages.append(f"resumed from {run['resumed_from']}")

    def _add_batch(
        self,
        split: str,
        epoch: int,
        number: int,
        seconds: float,
        size: int,
        lr: float,
        values: Mapping[str, float],
    ) -> None:
        if (split, epoch) != (self.split, self.epoch):
            self._times.clear()
        if epoch != self.epoch:
            self.batches = {name: {} for name in self.batches}
        self.split, self.epoch, self.number, self.lr = split, epoch, number, lr
        self._times.append((seconds, size))
        for name, value in values.items():
            series = self.batches.setdefault(name, {})
            series.setdefault(split, []).append((number, value))

    def _add_epoch(
        self, epoch: int, seconds: float, values: Mapping[str, float]
    ) -> None:
        self._extend_epochs(epoch, values)
        self.epochs_done = epoch
        self._durations.append(seconds - self._epoch_end)
        self._epoch_end = seconds

    def _extend_epochs(self, epoch: int, values: Mapping[str, float]) -> None:
        for key, value in values.items():
            split, _, name = key.partition("/")
            self.epochs.setdefault(name, {}).setdefault(split, []).append(
                (epoch, value)
            )

    def _close(self) -> None:
        self.is_closed = True

    @property
    def names(self) -> list[str]:
        """The metrics with values, in the order of the learner."""
        return list(dict.fromkeys([*self.epochs, *self.batches]))

    @property
    def samples_per_second(self) -> float:
        """The mean speed over the last batches of the split, NaN before two of them."""
        samples = sum(size for _, size in list(self._times)[1:])
        seconds = self._times[-1][0] - self._times[0][0] if self._times else 0.0
        return samples / seconds if seconds > 0 else math.nan

    @property
    def batch_seconds(self) -> float:
        """The mean time between the last batches of the split."""
        if len(self._times) < 2:
            return math.nan
        return (self._times[-1][0] - self._times[0][0]) / (len(self._times) - 1)

    @property
    def split_seconds_left(self) -> float:
        """The time until the split ends, NaN where its number of batches is unknown."""
        total = self.batch_totals.get(self.split)
        if total is None:
            return math.nan
        return max(0, total - self.number) * self.batch_seconds

    def run_seconds_left(self, now: float) -> float:
        """Return the time until the last epoch ends, from the mean of those before.

        In the first epoch of a process all batches are taken to last as long as the
        last ones.
        """
        left = self.epoch_total - self.epochs_done
        if self._durations:
            mean = sum(self._durations) / len(self._durations)
            return max(0.0, left * mean - (now - self._epoch_end))
        totals = list(self.batch_totals.values())
        counted = [total for total in totals if total is not None]
        if len(counted) < len(totals):
            return math.nan
        is_valid = self.split == "valid"
        done = self.number + is_valid * (self.batch_totals.get("train") or 0)
        return max(0, left * sum(counted) - done) * self.batch_seconds


def thin_series(points: list[tuple[int, float]], limit: int) -> list[tuple[int, float]]:
    """Return at most ``limit`` points, each the mean of as many neighbors; no NaN."""
    finite = [point for point in points if math.isfinite(point[1])]
    count = -(-len(finite) // limit)
    if count <= 1:
        return finite
    chunks = (finite[i : i + count] for i in range(0, len(finite), count))
    return [(c[-1][0], sum(y for _, y in c) / len(c)) for c in chunks]


def format_seconds(seconds: float) -> str:
    """Return ``1:02:03``, ``2:03``, or ``-:--`` for NaN."""
    if math.isnan(seconds):
        return "-:--"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
