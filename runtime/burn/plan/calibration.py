"""Accuracy of a reduced-precision function, measured on sample arguments."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import inf, log10
from typing import Any

import numpy as np

from burn import dtypes
from burn.ops.support import Array
from burn.plan.pytree import mapped
from burn.tensor import Tensor


@dataclass(frozen=True)
class Accuracy:
    """The error of a result against the float32 result, over all samples.

    ``largest`` is the largest absolute difference and ``mean`` their mean, ``scale``
    the largest absolute value of the float32 result, ``decibels`` the signal-to-noise
    ratio, and ``agreement`` the fraction (0 to 1) of rows along the last axis whose
    argmax is the same.
    """

    largest: float
    scale: float
    decibels: float
    agreement: float
    mean: float

    def __str__(self) -> str:
        return (
            f"{self.largest:.3g} of {self.scale:.3g} at most, "
            f"{self.decibels:.1f} dB, {100 * self.agreement:.1f} % of rows agree"
        )


@dataclass(frozen=True)
class ErrorSums:
    """Running sums from which an :class:`Accuracy` is computed."""

    largest: float = 0.0
    scale: float = 0.0
    power: float = 0.0
    noise: float = 0.0
    absolute: float = 0.0
    elements: int = 0
    rows: int = 0
    agreeing: int = 0

    def with_arrays(self, actual: Array, expected: Array) -> "ErrorSums":
        """Add one sample's result and the result of the model in float32."""
        actual, expected = (a.astype(np.float64) for a in (actual, expected))
        difference = np.abs(actual - expected)
        rows = [a.reshape(-1, a.shape[-1] if a.ndim else 1) for a in (actual, expected)]
        same = rows[0].argmax(axis=1) == rows[1].argmax(axis=1)
        return replace(
            self,
            largest=max(self.largest, float(difference.max(initial=0))),
            scale=max(self.scale, float(np.abs(expected).max(initial=0))),
            power=self.power + float(np.square(expected).sum()),
            noise=self.noise + float(np.square(difference).sum()),
            absolute=self.absolute + float(difference.sum()),
            elements=self.elements + difference.size,
            rows=self.rows + len(same),
            agreeing=self.agreeing + int(same.sum()),
        )

    def accuracy(self) -> Accuracy:
        """Return the accuracy over all samples that were added."""
        decibels = inf
        if self.noise:
            ratio = self.power / self.noise
            decibels = 10 * log10(ratio) if ratio else -inf
        agreement = self.agreeing / self.rows if self.rows else 1.0
        mean = self.absolute / self.elements if self.elements else 0.0
        return Accuracy(self.largest, self.scale, decibels, agreement, mean)


def sample_arguments(sample: Any) -> tuple[Any, ...]:
    """Return the arguments of a sample: the tuple itself, or a tuple of the one tensor.

    Raises:
        TypeError: ``sample`` is neither a tuple nor a tensor.
    """
    if isinstance(sample, tuple):
        return sample
    if isinstance(sample, Tensor):
        return (sample,)
    kind = type(sample).__name__
    raise TypeError(f"expected a tensor or a tuple of arguments, got {kind}")


def compare_outputs(
    function: Callable[..., Any],
    samples: Iterable[tuple[Any, ...]],
    expected: Iterable[Any],
) -> tuple[Accuracy, ...]:
    """Return the accuracy of each float output of ``function``, in output order."""
    sums: list[ErrorSums] = []
    for sample, result in zip(samples, expected, strict=True):
        pairs = zip(_floats(function(*sample)), _floats(result), strict=True)
        for number, (one, other) in enumerate(pairs):
            if number == len(sums):
                sums.append(ErrorSums())
            sums[number] = sums[number].with_arrays(one, other)
    return tuple(each.accuracy() for each in sums)


def _floats(result: Any) -> list[Array]:
    arrays: list[Array] = []

    def note(leaf: Any) -> Any:
        if type(leaf) is Tensor and dtypes.is_float(leaf.dtype) and leaf.size:
            arrays.append(leaf.numpy())
        return leaf

    mapped(note, result)
    return arrays
