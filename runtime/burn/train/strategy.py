"""Strategies to keep checkpoints, and early stopping."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol

#: The values of an epoch by key, as ``valid/accuracy``.
Values = Mapping[str, float]
Mode = Literal["min", "max"]


class Strategy(Protocol):
    """A strategy for keeping checkpoints; the newest one is always kept."""

    def kept(self, history: Sequence[Values], modes: Mapping[str, Mode]) -> set[int]:
        """Return the epochs, from 1, whose checkpoints are kept.

        ``history`` has the values of each epoch, ``modes`` whether more or less is
        better.
        """


class KeepLast:
    """Keeps the checkpoints of the last ``count`` epochs."""

    def __init__(self, count: int = 1) -> None:
        if count < 1:
            raise ValueError(f"expected count >= 1, got {count}")
        self.count = count

    def kept(self, history: Sequence[Values], modes: Mapping[str, Mode]) -> set[int]:
        last = len(history)
        return set(range(max(1, last - self.count + 1), last + 1))


class KeepBest:
    """Keeps the checkpoint of the first epoch with the best value of ``key``."""

    def __init__(self, key: str, mode: Mode | None = None) -> None:
        self.key, self.mode = key, mode

    def kept(self, history: Sequence[Values], modes: Mapping[str, Mode]) -> set[int]:
        epoch = best_epoch(history, self.key, self.mode or mode_of(self.key, modes))
        return set() if epoch is None else {epoch}


class KeepAny:
    """Keeps the union of several strategies."""

    def __init__(self, *strategies: Strategy) -> None:
        self.strategies = strategies

    def kept(self, history: Sequence[Values], modes: Mapping[str, Mode]) -> set[int]:
        epochs: set[int] = set()
        for strategy in self.strategies:
            epochs |= strategy.kept(history, modes)
        return epochs


class Patience:
    """Stops training after ``epochs`` consecutive epochs without improvement of
    ``key``.

    Improvements must exceed ``min_delta``; NaN is no improvement. With ``check_finite``
    an epoch whose value is NaN or infinite ends training at once.
    """

    def __init__(
        self,
        epochs: int,
        key: str = "valid/loss",
        *,
        min_delta: float = 0.0,
        mode: Mode | None = None,
        check_finite: bool = True,
    ) -> None:
        if not isinstance(epochs, int):
            raise TypeError(
                f"expected a number of epochs, got {epochs!r}; "
                "Patience(3, 'valid/loss') has the key second"
            )
        if epochs < 1:
            raise ValueError(f"expected epochs >= 1, got {epochs}")
        self.epochs, self.key, self.min_delta = epochs, key, min_delta
        self.mode, self.check_finite = mode, check_finite

    def reason(self, history: Sequence[Values]) -> str:
        """Return why training ended after the epochs of ``history``."""
        if self._has_ended_in_overflow(history):
            return f"{self.key} is {value_of(history[-1], self.key)}"
        epochs = "1 epoch" if self.epochs == 1 else f"{self.epochs} epochs"
        return f"no better {self.key} for {epochs}"

    def _has_ended_in_overflow(self, history: Sequence[Values]) -> bool:
        if not (self.check_finite and history):
            return False
        return not math.isfinite(value_of(history[-1], self.key))

    def is_over(self, history: Sequence[Values], modes: Mapping[str, Mode]) -> bool:
        """Return whether training ends after the epochs of ``history``."""
        if self._has_ended_in_overflow(history):
            return True
        sign = 1.0 if (self.mode or mode_of(self.key, modes)) == "max" else -1.0
        best, waited = -math.inf, 0
        for values in history:
            value = sign * value_of(values, self.key)
            if value > best + self.min_delta:
                best, waited = value, 0
            else:
                waited += 1
        return waited >= self.epochs


def keys_read_by(strategy: Strategy | Patience | None) -> set[str]:
    """Return the keys of values that one of the strategies above reads."""
    if isinstance(strategy, KeepAny):
        return set().union(*map(keys_read_by, strategy.strategies))
    return {strategy.key} if isinstance(strategy, KeepBest | Patience) else set()


def check_keys(
    keys: Sequence[str], strategies: Sequence[Strategy | Patience | None]
) -> None:
    """Check that strategies read values among ``keys``.

    Raises:
        ValueError: one reads another value.
    """
    for strategy in strategies:
        for key in sorted(keys_read_by(strategy) - set(keys)):
            raise ValueError(
                f"{type(strategy).__name__} reads {key!r}, expected one of "
                f"{', '.join(keys)}"
            )


def best_epoch(history: Sequence[Values], key: str, mode: Mode) -> int | None:
    """Return the first epoch, from 1, with the best value; None if none is finite."""
    sign = 1.0 if mode == "max" else -1.0
    scores = [sign * value_of(values, key) for values in history]
    usable = [score for score in scores if math.isfinite(score)]
    return scores.index(max(usable)) + 1 if usable else None


def last_finite_epoch(history: Sequence[Values], losses: Iterable[str]) -> int:
    """Return the last epoch, from 1, whose losses are finite; 0 if there is none."""
    keys = [f"{split}/{loss}" for loss in losses for split in ("train", "valid")]
    for epoch in range(len(history), 0, -1):
        values = history[epoch - 1]
        if all(math.isfinite(values.get(key, 0.0)) for key in keys):
            return epoch
    return 0


def describe_overflow(epoch: int, finite: int) -> str:
    """Return a warning of the first epoch after ``finite`` with a loss of NaN."""
    checkpoint = "there is no earlier checkpoint"
    if finite:
        checkpoint = f"the checkpoint of epoch {finite} is kept"
    return (
        f"epoch {epoch}: the loss is NaN or infinite, and the weights may be as well; "
        f"{checkpoint}"
    )


def value_of(values: Values, key: str) -> float:
    """Return the value of ``key``; a ``ValueError`` lists the keys if it is missing."""
    if key not in values:
        raise ValueError(f"expected one of {', '.join(sorted(values))}, got {key!r}")
    return values[key]


def mode_of(key: str, modes: Mapping[str, Mode]) -> Mode:
    """Return whether more or less of ``key`` is better.

    Raises:
        ValueError: no metric defines it.
    """
    if key not in modes:
        raise ValueError(
            f"expected one of {', '.join(sorted(modes))}, or mode='min' or 'max', "
            f"got {key!r}"
        )
    return modes[key]
