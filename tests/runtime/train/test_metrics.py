"""Metrics against values by hand, in batches of different sizes."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

import burn
from burn.train import Classified, Regressed
from burn.train.metrics import (
    Accuracy,
    Batch,
    FBeta,
    LearningRate,
    Loss,
    MeanIoU,
    Perplexity,
    Precision,
    Recall,
    Throughput,
    TopK,
)

LOGITS = np.array([[3, 1, 0], [0, 2, 1], [1, 0, 2], [2, 1, 0], [0, 1, 2]], np.float32)
TARGETS = np.array([0, 1, 1, 2, 2])


def run(metric: Any, losses: tuple[float, float] = (1.0, 2.0)) -> float:
    metric.update(output(slice(0, 3), losses[0]), Batch(3, 0.1))
    metric.update(output(slice(3, 5), losses[1]), Batch(2, 0.2))
    return float(metric.compute())


def output(rows: slice, loss: float) -> Classified:
    logits, targets = burn.tensor(LOGITS[rows]), burn.tensor(TARGETS[rows])
    return Classified(burn.tensor(loss), logits, targets)


# Classes said: 0, 1, 2, 0, 2.
@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (Accuracy(), 3 / 5),
        (Accuracy(ignore_index=1), 2 / 3),
        (TopK(2), 3 / 5),
        (TopK(3), 1.0),
        (Loss(), 1.4),
        (Perplexity(), math.exp(1.4)),
        (LearningRate(), 0.2),
        (Precision(3), (1 / 2 + 1 + 1 / 2) / 3),
        (Recall(3), (1 + 1 / 2 + 1 / 2) / 3),
        (FBeta(3), (2 / 3 + 2 / 3 + 1 / 2) / 3),
        (FBeta(3, 2.0), (5 / 6 + 5 / 9 + 1 / 2) / 3),
        (FBeta(4), (2 / 3 + 2 / 3 + 1 / 2) / 3),
        (FBeta(3, average="micro"), 3 / 5),
    ],
)
def test_values(metric: Any, expected: float) -> None:
    assert run(metric) == pytest.approx(expected, rel=1e-6)
    metric.reset()
    assert math.isnan(metric.compute())
    assert run(metric) == pytest.approx(expected, rel=1e-6)


def test_scores_have_their_classes_on_the_second_axis() -> None:
    logits = burn.tensor(np.moveaxis(LOGITS[None, :, :], 2, 1))
    both = Classified(burn.tensor(1.0), logits, burn.tensor(TARGETS[None]))
    assert Accuracy().update(both, Batch(1, 0.1)) == 3 / 5


def test_wrong_use_is_refused() -> None:
    regressed = Regressed(*(burn.tensor([1.0]) for _ in range(3)))
    with pytest.raises(TypeError, match="logits and targets, got Regressed with loss"):
        Accuracy().update(regressed, Batch(1, 0.1))
    with pytest.raises(ValueError, match="expected k >= 1, got 0"):
        TopK(0)
    with pytest.raises(ValueError, match="expected 'micro' or 'macro', got 'most'"):
        FBeta(3, average="most")  # type: ignore[arg-type]


def test_states_of_processes_are_merged() -> None:
    speed = Throughput()
    speed.merge([{"samples": 6, "seconds": 2.0}, {"samples": 4, "seconds": 2.5}])
    assert speed.compute() == 4
    rate = LearningRate()
    rate.merge([{"lr": 0.1}, {"lr": 0.1}])
    assert rate.compute() == 0.1
    recall = Recall(2)
    recall.merge([{"confusion": [[3, 1], [0, 0]]}, {"confusion": [[1, 0], [1, 1]]}])
    assert recall.compute() == pytest.approx((4 / 5 + 1 / 2) / 2)
    with pytest.raises(KeyError):
        recall.merge([{"sum": 1}])


@pytest.mark.parametrize(
    "metric",
    [
        Accuracy,
        partial(TopK, 2),
        partial(FBeta, 3),
        partial(Precision, 3),
        partial(Recall, 3),
        partial(MeanIoU, 3),
    ],
    ids=lambda metric: getattr(metric, "func", metric).__name__,
)
@pytest.mark.parametrize("padding", [-100, -1, 3])
def test_padding_is_left_out_or_refused(metric: Any, padding: int) -> None:
    scores = np.random.default_rng(0).standard_normal((6, 3), np.float32)
    labels = np.array([0, 1, 2, 2, padding, padding])
    first = [burn.tensor(each[:4]) for each in (scores, labels)]
    every = [burn.tensor(each) for each in (scores, labels)]
    loss = burn.tensor(np.float32(1.0))
    expected = metric().update(Classified(loss, *first), Batch(6, 0.1))
    ignoring = metric(ignore_index=padding)
    batch = Batch(6, 0.1)
    assert ignoring.update(Classified(loss, *every), batch) == expected
    with pytest.raises(ValueError, match=rf"got {padding}; ignore_index={padding}"):
        metric().update(Classified(loss, *every), batch)


def test_another_number_of_classes_is_refused() -> None:
    loss, labels = burn.tensor(np.float32(1.0)), burn.tensor(np.array([0, 1]))
    logits = burn.tensor(np.zeros((2, 4), np.float32))
    with pytest.raises(ValueError, match="f1: expected 3 classes, got logits of 4"):
        FBeta(3).update(Classified(loss, logits, labels), Batch(2, 0.1))
