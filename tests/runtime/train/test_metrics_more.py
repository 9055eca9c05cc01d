"""Metrics of rankings, segmentation and texts, against values by hand."""

import math
from typing import Any

import numpy as np
import pytest

import burn
from burn.train import Classified
from burn.train.metrics import (
    AUROC,
    Batch,
    CharErrorRate,
    MeanIoU,
    Throughput,
    WordErrorRate,
)
from burn.train.metrics.ranking import area_under_curve
from burn.train.metrics.text import edit_distance


def classified(logits: Any, targets: Any) -> Classified:
    arrays = (np.asarray(logits, np.float32), np.asarray(targets, np.int64))
    return Classified(burn.tensor(0.0), *map(burn.tensor, arrays))


def test_area_counts_ties_half() -> None:
    scores = np.array([0.1, 0.4, 0.4, 0.8])
    # Pairs: (0.4, 0.1) right, (0.4, 0.4) tied, (0.8, ...) right twice.
    positive = np.array([False, True, False, True])
    assert area_under_curve(scores, positive) == pytest.approx(3.5 / 4)
    assert math.isnan(area_under_curve(scores, np.ones(4, bool)))


@pytest.mark.parametrize("columns", [1, 2])
def test_auroc_of_two_classes(columns: int) -> None:
    scores = np.array([[-2.0], [0.5], [0.5], [3.0], [1.0]])
    logits = scores if columns == 1 else np.hstack([np.zeros_like(scores), scores])
    metric = AUROC()
    metric.update(classified(logits[:2], [0, 1]), Batch(2, 0.1))
    metric.update(classified(logits[2:], [0, 1, 0]), Batch(3, 0.1))
    # Positive 0.5 and 3 against -2, 0.5, 1: (1 + 0.5 + 0) + 3 of 6.
    assert metric.compute() == pytest.approx(4.5 / 6)


def test_auroc_of_several_classes_is_the_mean_of_those_that_occur() -> None:
    logits = np.log([[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.5, 0.4, 0.1]])
    metric = AUROC()
    assert metric.update(classified(logits[:1], [0]), Batch(1, 0.1)) is None
    metric.update(classified(logits[1:], [1, 1]), Batch(2, 0.1))
    assert metric.compute() == pytest.approx((1 + 1) / 2)
    metric.reset()
    assert math.isnan(metric.compute())


def test_mean_iou() -> None:
    logits = np.zeros((1, 3, 4))
    logits[0, [0, 1, 1, 0], range(4)] = 1
    metric = MeanIoU(3)
    # Class 0: one of three; class 1: one of three; class 2 does not occur.
    value = metric.update(classified(logits, [[0, 1, 0, 1]]), Batch(1, 0.1))
    assert value == metric.compute() == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [
        ("kitten", "sitting", 3),
        ("", "abc", 3),
        ("abc", "", 3),
        ("", "", 0),
        ("abc", "abc", 0),
        ("flaw", "lawn", 2),
        ("intention", "execution", 5),
    ],
)
def test_edit_distance(a: str, b: str, distance: int) -> None:
    assert edit_distance(a, b) == edit_distance(b, a) == distance


@pytest.mark.parametrize(
    ("kind", "expected"), [(WordErrorRate, 2 / 3), (CharErrorRate, 2 / 7)]
)
def test_error_rates_of_texts(kind: Any, expected: float) -> None:
    letters = "_ab "

    def decode(ids: Any) -> str:
        return "".join(letters[i] for i in ids if i)

    said, wanted = ["ab ab", "ba___"], ["ab aa", "bb___"]
    ids = [[letters.index(c) for c in text] for text in said]
    logits = np.eye(4, dtype=np.float32)[np.array(ids)].transpose(0, 2, 1)
    targets = [[letters.index(c) for c in text] for text in wanted]
    metric = kind(decode)
    assert metric.update(classified(logits, targets), Batch(2, 0.1)) == metric.compute()
    assert metric.compute() == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"expected logits \[N, C, L\]"):
        metric.update(classified(np.zeros((2, 3)), [0, 1]), Batch(2, 0.1))


def test_throughput_needs_two_batches() -> None:
    metric = Throughput()
    assert metric.update(None, Batch(4, 0.1)) is None
    assert math.isnan(metric.compute())
    value = metric.update(None, Batch(4, 0.1))
    assert value is not None
    assert value == metric.compute() > 0
