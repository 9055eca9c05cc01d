"""The extremes of metrics over the epochs of a run, as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from burn.train.strategy import Values, best_epoch

HEADERS = ("metric", "min", "epoch", "max", "epoch", "last")


@dataclass(frozen=True)
class MetricSummary:
    """The extremes of one key, such as ``valid/loss``, with their epochs from 1.

    Extremes are NaN, and their epochs None, if no epoch has a value.
    """

    key: str
    minimum: float
    minimum_epoch: int | None
    maximum: float
    maximum_epoch: int | None
    last: float


@dataclass(frozen=True)
class Summary:
    """The number of epochs, and a row for each metric and split; prints as a table."""

    epochs: int
    metrics: tuple[MetricSummary, ...]

    def __str__(self) -> str:
        rows = [HEADERS, *map(_cells, self.metrics)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [f"{self.epochs} epoch{'s' * (self.epochs != 1)}"]
        for first, *others in rows:
            pairs = zip(others, widths[1:], strict=True)
            cells = [cell.rjust(width) for cell, width in pairs]
            lines.append("  ".join([first.ljust(widths[0]), *cells]))
        return "\n".join(lines)


def summarize_history(history: Sequence[Values]) -> Summary:
    """Return the extremes of each key that an epoch of ``history`` has."""
    keys = dict.fromkeys(key for values in history for key in values)
    return Summary(len(history), tuple(_summarize(history, key) for key in keys))


def _summarize(history: Sequence[Values], key: str) -> MetricSummary:
    rows = [{key: values.get(key, math.nan)} for values in history]
    lowest, highest = best_epoch(rows, key, "min"), best_epoch(rows, key, "max")

    def value(epoch: int | None) -> float:
        return math.nan if epoch is None else rows[epoch - 1][key]

    return MetricSummary(
        key, value(lowest), lowest, value(highest), highest, rows[-1][key]
    )


def _cells(row: MetricSummary) -> tuple[str, ...]:
    epochs = [
        "-" if each is None else str(each)
        for each in (row.minimum_epoch, row.maximum_epoch)
    ]
    low, high, last = (f"{x:.4g}" for x in (row.minimum, row.maximum, row.last))
    return (row.key, low, epochs[0], high, epochs[1], last)
