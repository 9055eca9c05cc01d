"""Reasons why float32 gradients of a module differ from PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from tests.wild import torch_results
from tests.wild.compare import Array, compare_gradients, is_right
from tests.wild.entry import Case

#: How close a finite difference is to the gradient that it confirms, relative to the
#: distance of the two gradients.
CONFIRMED = 0.05
#: The largest difference that is called rounding without a comparison in float64.
UNCONFIRMED = 1e-2


def explain_difference(
    case: Case,
    expected: Mapping[str, Array],
    actual: Mapping[str, Array],
    found64: Mapping[str, Array],
    changed: Sequence[str] = (),
    slope64: Callable[[Mapping[str, Array]], float] | None = None,
) -> str:
    """Return "rounding", "detached", or "" if the gradients of the module are wrong.

    ``expected`` are PyTorch's gradients and ``actual`` the module's, in float32;
    ``found64`` are the module's in float64.

    It is rounding if both agree in float64, and PyTorch's float32 gradients move that
    far themselves: to float64, or by changes of the parameters of a few roundings.
    They are detached if the module has the derivative of the outputs, by a finite
    difference in float64, and PyTorch does not: there is a ``detach``, a padding index
    or a function with a gradient of its own. Of a model that PyTorch cannot run in
    float64, differences below ``UNCONFIRMED`` can be rounding, and ``slope64`` is the
    finite difference, that of the module along a direction.
    """
    error = compare_gradients(actual, expected, changed).error
    try:
        expected64 = torch_results.gradients64(case)
    except (RuntimeError, TypeError, ValueError):
        noise = torch_results.gradient_noise(case, expected)
        if is_right(error, noise) and error < UNCONFIRMED:
            return "rounding"
        if slope64 is None:
            return ""
        return _detached(found64, expected, changed, slope64)
    if is_right(compare_gradients(found64, expected64, changed).error):
        noise = compare_gradients(expected, expected64, changed).error
        if not is_right(error, noise):
            noise = max(noise, torch_results.gradient_noise(case, expected))
        return "rounding" if is_right(error, noise) else ""
    slope = partial(torch_results.slope64, case)
    return _detached(actual, expected64, changed, slope)


def _detached(
    actual: Mapping[str, Array],
    expected: Mapping[str, Array],
    changed: Sequence[str],
    slope64: Callable[[Mapping[str, Array]], float],
) -> str:
    """Return "detached" if ``actual`` is the derivative and ``expected`` is not."""
    direction = {
        key: actual[key].astype(np.float64) - gradient
        for key, gradient in expected.items()
        if key in actual and key not in changed and actual[key].shape == gradient.shape
    }
    slope = slope64(direction)
    ours, theirs = _along(actual, direction), _along(expected, direction)
    is_derivative = abs(slope - ours) <= CONFIRMED * abs(ours - theirs)
    return "detached" if is_derivative else ""


def follows(
    found: Mapping[str, Array], slope64: Callable[[Mapping[str, Array]], float]
) -> bool:
    """Return whether gradients are the derivative along themselves that is measured."""
    expected = _along(found, found)
    return abs(slope64(found) - expected) <= CONFIRMED * abs(expected)


def _along(gradients: Mapping[str, Array], direction: Mapping[str, Array]) -> float:
    return float(sum(np.vdot(gradients[key], d) for key, d in direction.items()))
