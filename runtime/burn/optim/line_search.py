"""A line search for a step length that fulfills the strong Wolfe conditions.

It follows algorithms 3.5 and 3.6 of J. Nocedal and S. Wright, "Numerical Optimization",
with cubic interpolation. Constants are those of PyTorch, so that steps are the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from burn.tensor import Tensor

#: Of the decrease that the slope at the start predicts, the share that is sufficient.
_DECREASE = 1e-4
#: Of the slope at the start, the share to which it has to fall.
_CURVATURE = 0.9


class Point(NamedTuple):
    """A step length with the loss, its slope along the direction, and the gradient."""

    length: float
    loss: float
    slope: float
    gradient: Tensor


Evaluate = Callable[[float], Point]


def strong_wolfe(
    evaluate: Evaluate, start: Point, length: float, *, shortest: float, limit: int
) -> tuple[Point, int]:
    """Return the best point, and the number of evaluations.

    ``start`` is the point of length 0, ``length`` the first that is tried. Intervals
    shorter than ``shortest`` are not divided. ``limit`` is the maximum number of
    evaluations after the first.
    """
    before, point = start, evaluate(length)
    for rounds in range(limit):
        is_rising = rounds > 1 and point.loss >= before.loss
        if _is_insufficient(point, start) or is_rising:
            break
        if _is_flat(point, start):
            return point, rounds + 1
        if point.slope >= 0:
            break
        least = point.length + 0.01 * (point.length - before.length)
        longer = _cubic_minimum(before, point, least, 10 * point.length)
        before, point = point, evaluate(longer)
    else:
        return min(start, point, key=_loss), limit + 1
    return _divide(evaluate, start, (before, point), range(rounds, limit), shortest)


def _divide(
    evaluate: Evaluate,
    start: Point,
    ends: tuple[Point, Point],
    rounds: range,
    shortest: float,
) -> tuple[Point, int]:
    """Return the best point between two, and the number of all evaluations.

    The interval has a point that fulfills the conditions.
    """
    low, high = sorted(ends, key=_loss)
    is_slow = False
    for count in rounds:
        if abs(high.length - low.length) < shortest:
            return low, count + 1
        left, right = sorted((low.length, high.length))
        length = _cubic_minimum(low, high, left, right)
        length, is_slow = _inside(length, left, right, is_slow)
        point = evaluate(length)
        if _is_insufficient(point, start) or point.loss >= low.loss:
            low, high = sorted((low, point), key=_loss)
            continue
        if _is_flat(point, start):
            return point, count + 2
        if point.slope * (high.length - low.length) >= 0:
            high = low
        low = point
    return low, rounds.stop + 1


def _loss(point: Point) -> float:
    return point.loss


def _is_insufficient(point: Point, start: Point) -> bool:
    return point.loss > start.loss + _DECREASE * point.length * start.slope


def _is_flat(point: Point, start: Point) -> bool:
    return abs(point.slope) <= -_CURVATURE * start.slope


def _inside(
    length: float, left: float, right: float, is_slow: bool
) -> tuple[float, bool]:
    """Return a length away from the ends, and whether it is near one of them.

    A length near an end is kept once.
    """
    margin = 0.1 * (right - left)
    if min(right - length, length - left) >= margin:
        return length, False
    if not is_slow and left < length < right:
        return length, True
    is_right = abs(length - right) < abs(length - left)
    return (right - margin if is_right else left + margin), False


def _cubic_minimum(a: Point, b: Point, least: float, largest: float) -> float:
    """Return where the cubic through two points with their slopes is least."""
    if a.length > b.length:
        a, b = b, a
    mean = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.length - b.length)
    square = mean * mean - a.slope * b.slope
    if not square >= 0:
        return (least + largest) / 2
    root = math.sqrt(square)
    share = (b.slope + root - mean) / (b.slope - a.slope + 2 * root)
    return min(max(b.length - (b.length - a.length) * share, least), largest)
