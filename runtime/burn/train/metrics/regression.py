"""Regression metrics, from ``predictions`` and ``targets`` of equal shape."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from burn.train.metrics.metric import Array, Batch, Mean


class MeanSquaredError(Mean):
    """The mean of squared differences, over all elements."""

    higher_is_better: ClassVar[bool | None] = False
    inputs: ClassVar[tuple[str, ...]] = ("predictions", "targets")

    def __init__(self, name: str = "mse") -> None:
        super().__init__(name)

    def update(self, output: Any, batch: Batch) -> float:
        predictions, targets = self.inputs_of(output)
        if predictions.shape != targets.shape:
            raise ValueError(
                f"{self.name}: expected predictions and targets of equal shape, got "
                f"{list(predictions.shape)} and {list(targets.shape)}"
            )
        first, second = (x.numpy().astype(np.float64) for x in (predictions, targets))
        return self.add(float(self.errors(first - second).sum()), first.size)

    def errors(self, differences: Array) -> Array:
        """Return the error of each element."""
        return np.square(differences)


class MeanAbsoluteError(MeanSquaredError):
    """The mean of absolute differences, over all elements."""

    def __init__(self, name: str = "mae") -> None:
        super().__init__(name)

    def errors(self, differences: Array) -> Array:
        return np.abs(differences)
