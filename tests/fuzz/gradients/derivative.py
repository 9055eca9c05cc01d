"""The derivative of a number by a step, from differences, with a bound of its error.

The rounding noise of the function is measured from high differences at equally spaced
points (Hamming; Moré and Wild, "Estimating computational noise", 2011). Steps grow
until rounding and truncation together are small enough. The limit of forward minus
backward differences shows a kink at the point itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import factorial

import numpy as np

#: Steps of the differences, the next one if rounding hides the derivative.
STEPS = (1e-5, 1e-4, 1e-3)
#: The distance and the number of the points that noise is measured at, and the order
#: of the differences, which smooth functions add nothing to.
DISTANCE, POINTS, ORDERS = 1e-7, 12, (4, 5, 6)
#: What rounding adds to a difference quotient, in noise over step.
ROUNDING = 16.0
#: The largest relative error of a derivative, and the error allowed.
KINK, ERROR = 1e-3, 1e-5
#: What numbers of size 1 inside of the function add to a quotient: steps of 1e-16, on
#: which ``1 - tanh(x)`` stays for many points, so that no noise shows.
PLATEAU = 1e-12


@dataclass(frozen=True)
class Slope:
    """A derivative along a direction, and the error of it; ``scale`` is its size."""

    value: float
    error: float
    scale: float

    def differs(
        self,
        other: float,
        scale: float = 0.0,
        relative: float = ERROR,
        error: float = 0,
    ) -> bool:
        """Return whether ``other`` of an error and size is not this derivative."""
        allowed = PLATEAU + self.error + error + relative * max(self.scale, scale)
        return not abs(self.value - other) <= allowed


def derivative(at: Callable[[float], float]) -> Slope | None:
    """The derivative of ``at`` at 0; None where it is not smooth."""
    base = at(0.0)
    noise = max(noise_of(at), float(np.finfo(np.float64).eps) * abs(base))
    best: Slope | None = None
    for step in STEPS:
        slope, rounding = _quotient(at, base, step, noise)
        total = Slope(slope.value, slope.error + rounding, slope.scale)
        if not np.isfinite([total.value, total.error]).all():
            continue
        is_smooth = slope.error <= KINK * abs(slope.value) + rounding
        is_exact = total.error <= KINK * max(abs(slope.value), abs(base))
        if is_smooth and is_exact and (best is None or total.error < best.error):
            best = total
        if rounding <= ERROR * abs(slope.value):
            break
    return best


def noise_of(at: Callable[[float], float]) -> float:
    """The standard deviation of the rounding noise of ``at`` around 0."""
    middle = POINTS // 2
    values = np.array([at((i - middle) * DISTANCE) for i in range(POINTS)])
    largest = 0.0
    for order in ORDERS:
        differences = np.diff(values, order)
        gamma = factorial(order) ** 2 / factorial(2 * order)
        largest = max(largest, float(gamma * (differences**2).mean()) ** 0.5)
    return largest


def _quotient(
    at: Callable[[float], float], base: float, step: float, noise: float
) -> tuple[Slope, float]:
    """The derivative by differences of two steps, its error, and that of rounding."""
    (left, right), (near_left, near_right) = (
        ((base - at(-h)) / h, (at(h) - base) / h) for h in (step, step / 2)
    )
    far, near = (left + right) / 2, (near_left + near_right) / 2
    value = near + (near - far) / 3
    jump = 2 * (near_right - near_left) - (right - left)
    error = abs(near - far) + abs(jump)
    return Slope(value, error, abs(value)), ROUNDING * noise / step
