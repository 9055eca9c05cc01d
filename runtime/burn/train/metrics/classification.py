"""Classification metrics, from ``logits`` [N, C, ...] and ``targets`` [N, ...]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from burn.tensor import Tensor
from burn.train.metrics.metric import Array, Batch, Mean, Metric

Average = Literal["micro", "macro"]


#: The inputs of these metrics.
INPUTS = ("logits", "targets")


def classes_of(
    inputs: Sequence[Tensor], ignore_index: int | None = None
) -> tuple[Array, Array]:
    """Return logits [N, C] and targets [N], with further axes merged into samples.

    Samples whose target is ``ignore_index`` are left out.

    Raises:
        ValueError: a target is no class, or shapes do not belong together.
    """
    logits, targets = inputs
    if logits.ndim < 2 or targets.shape not in _target_shapes(logits.shape):
        raise ValueError(
            "expected logits [N, C, ...] and targets [N, ...], got "
            f"{list(logits.shape)} and {list(targets.shape)}"
        )
    scores = np.moveaxis(logits.numpy(), 1, -1)
    classes, labels = scores.shape[-1], targets.numpy().reshape(-1)
    scores = scores.reshape(-1, classes)
    if ignore_index is not None:
        is_counted = labels != ignore_index
        scores, labels = scores[is_counted], labels[is_counted]
    classes = max(classes, 2)  # one score is that of the second class
    if labels.size and not 0 <= labels.min() <= labels.max() < classes:
        wrong = labels[(labels < 0) | (labels >= classes)][0]
        raise ValueError(
            f"expected targets in [0, {classes}), got {wrong}; "
            f"ignore_index={wrong} leaves such samples out"
        )
    return scores, labels


def _target_shapes(logits: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the shapes of targets for logits, which can have a class axis of 1."""
    samples, _, *places = logits
    return [(samples, *places), (samples, 1, *places)]


def predicted_classes(scores: Array) -> Array:
    """Return the classes with the highest of scores [N, C].

    One score is the logit of the second of two classes.
    """
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0).astype(np.int64)
    classes: Array = scores.argmax(-1)
    return classes


class TopK(Mean):
    """The fraction of samples whose class is among the ``k`` highest scores.

    Targets equal to ``ignore_index`` are not counted. Of equal scores the lower class
    comes first.
    """

    higher_is_better: ClassVar[bool | None] = True
    inputs: ClassVar[tuple[str, ...]] = INPUTS

    def __init__(
        self, k: int, name: str | None = None, *, ignore_index: int | None = None
    ) -> None:
        if k < 1:
            raise ValueError(f"expected k >= 1, got {k}")
        super().__init__(name or f"top_{k}")
        self.k, self.ignore_index = k, ignore_index

    def update(self, output: Any, batch: Batch) -> float:
        scores, targets = classes_of(self.inputs_of(output), self.ignore_index)
        if self.k == 1:
            hits = predicted_classes(scores) == targets
        else:
            order = np.argsort(-scores, axis=-1, kind="stable")[:, : self.k]
            hits = (order == targets[:, None]).any(-1)
        return self.add(float(hits.sum()), len(targets))


class Accuracy(TopK):
    """The fraction of samples whose class has the highest score."""

    def __init__(
        self, name: str = "accuracy", *, ignore_index: int | None = None
    ) -> None:
        super().__init__(1, name, ignore_index=ignore_index)


class FBeta(Metric):
    """The weighted harmonic mean of precision and recall; 0 where both are.

    ``macro`` is the mean over the classes that occur among targets or predictions,
    ``micro`` counts all samples together. Targets equal to ``ignore_index`` are not
    counted.
    """

    higher_is_better: ClassVar[bool | None] = True
    inputs: ClassVar[tuple[str, ...]] = INPUTS

    def __init__(
        self,
        classes: int,
        beta: float = 1.0,
        average: Average = "macro",
        name: str | None = None,
        *,
        ignore_index: int | None = None,
    ) -> None:
        if average not in ("micro", "macro"):
            raise ValueError(f"expected 'micro' or 'macro', got {average!r}")
        self.classes, self.beta, self.average = classes, beta, average
        self.ignore_index = ignore_index
        super().__init__(name or f"f{beta:g}")

    def initial(self) -> dict[str, Array]:
        return {"confusion": np.zeros((self.classes, self.classes), np.int64)}

    def update(self, output: Any, batch: Batch) -> float:
        scores, targets = classes_of(self.inputs_of(output), self.ignore_index)
        if max(scores.shape[-1], 2) > self.classes:
            got = f"logits of {scores.shape[-1]}"
            raise ValueError(f"{self.name}: expected {self.classes} classes, got {got}")
        counts = np.zeros_like(self.state["confusion"])
        np.add.at(counts, (targets.astype(np.int64), predicted_classes(scores)), 1)
        self.state["confusion"] = self.state["confusion"] + counts
        return self._of(counts)

    def compute(self) -> float:
        return self._of(self.state["confusion"])

    def _of(self, confusion: Array) -> float:
        true, targets = np.diag(confusion), confusion.sum(1)
        predicted = confusion.sum(0)
        used = (targets + predicted) > 0
        if self.average == "micro":
            true, targets, predicted = (
                each.sum(keepdims=True) for each in (true, targets, predicted)
            )
            used = targets > 0
        if not used.any():
            return float("nan")
        return float(self.scores(true, targets, predicted)[used].mean())

    def scores(self, true: Array, targets: Array, predicted: Array) -> Array:
        """Return the score of each class, from the counts of true positives and
        totals.
        """
        square = self.beta**2
        return _share((1.0 + square) * true, square * targets + predicted)


class Precision(FBeta):
    """True positives divided by predicted positives; 0 if there are none."""

    def __init__(
        self,
        classes: int,
        average: Average = "macro",
        name: str = "precision",
        *,
        ignore_index: int | None = None,
    ) -> None:
        super().__init__(classes, average=average, name=name, ignore_index=ignore_index)

    def scores(self, true: Array, targets: Array, predicted: Array) -> Array:
        return _share(true, predicted)


class Recall(FBeta):
    """True positives divided by positives; 0 if there are none."""

    def __init__(
        self,
        classes: int,
        average: Average = "macro",
        name: str = "recall",
        *,
        ignore_index: int | None = None,
    ) -> None:
        super().__init__(classes, average=average, name=name, ignore_index=ignore_index)

    def scores(self, true: Array, targets: Array, predicted: Array) -> Array:
        return _share(true, targets)


class MeanIoU(FBeta):
    """The mean over classes of intersection over union, for segmentation.

    The intersection counts samples of a class that are said to be of it, the union
    those of which one is true. Classes without either do not count.
    """

    def __init__(
        self, classes: int, name: str = "mean_iou", *, ignore_index: int | None = None
    ) -> None:
        super().__init__(classes, name=name, ignore_index=ignore_index)

    def scores(self, true: Array, targets: Array, predicted: Array) -> Array:
        return _share(true, targets + predicted - true)


def _share(a: Array, b: Array) -> Array:
    return np.divide(a, b, out=np.zeros(len(a)), where=b > 0)
