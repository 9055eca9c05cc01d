"""Metrics of rankings: the area under the receiver operating characteristic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from burn.train.metrics.classification import INPUTS, classes_of
from burn.train.metrics.metric import Array, Batch, Metric


class AUROC(Metric):
    """The area under the receiver operating characteristic, with ties counted half.

    ``logits`` are [N, 1] with targets 0 and 1, or [N, C]: two classes are ranked by the
    probability of the second; of more the mean over classes, each against all others,
    is taken, by the softmax of the logits. Classes without both kinds of samples do not
    count, and the value is NaN if none does. All scores are kept until the epoch ends.
    """

    higher_is_better: ClassVar[bool | None] = True
    inputs: ClassVar[tuple[str, ...]] = INPUTS

    def __init__(self, name: str = "auroc") -> None:
        super().__init__(name)

    def reset(self) -> None:
        super().reset()
        self._scores: list[Array] = []
        self._targets: list[Array] = []

    def initial(self) -> dict[str, Array]:
        return {}

    def state_dict(self) -> dict[str, Any]:
        return {
            "scores": [array.tolist() for array in self._scores],
            "targets": [array.tolist() for array in self._targets],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._scores = [np.array(each, np.float64) for each in state["scores"]]
        self._targets = [np.array(each, np.int64) for each in state["targets"]]

    def merge(self, states: Sequence[Mapping[str, Any]]) -> None:
        """Combine the scores and targets of all ``states``."""
        names = ("scores", "targets")
        self.load_state_dict(
            {name: [row for state in states for row in state[name]] for name in names}
        )

    def update(self, output: Any, batch: Batch) -> float | None:
        logits, targets = classes_of(self.inputs_of(output))
        self._scores.append(_scores(logits))
        self._targets.append(targets)
        value = _area(self._scores[-1], targets)
        return None if math.isnan(value) else value

    def compute(self) -> float:
        if not self._scores:
            return math.nan
        return _area(np.concatenate(self._scores), np.concatenate(self._targets))


def _scores(logits: Array) -> Array:
    """Return scores [N, K], for each class that is compared with all others."""
    if logits.shape[1] == 1:
        return logits.astype(np.float64)
    if logits.shape[1] == 2:
        # In the order of the probabilities, without their rounding.
        return logits[:, 1:].astype(np.float64) - logits[:, :1]
    shifted = logits.astype(np.float64) - logits.max(axis=1, keepdims=True)
    exp = np.exp(shifted)
    softmax: Array = exp / exp.sum(axis=1, keepdims=True)
    return softmax


def _area(scores: Array, targets: Array) -> float:
    first = 0 if scores.shape[1] > 1 else 1
    areas = [
        area_under_curve(column, targets == label)
        for label, column in enumerate(scores.T, first)
    ]
    defined = [area for area in areas if not math.isnan(area)]
    return sum(defined) / len(defined) if defined else math.nan


def area_under_curve(scores: Array, positive: Array) -> float:
    """Return the fraction of correctly ordered (positive, negative) pairs, by mean
    ranks.
    """
    count = int(positive.sum())
    others = len(positive) - count
    if not count or not others:
        return math.nan
    _, group, sizes = np.unique(scores, return_inverse=True, return_counts=True)
    last = np.cumsum(sizes)
    ranks = (last - (sizes - 1) / 2)[group.reshape(-1)]
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * others))
