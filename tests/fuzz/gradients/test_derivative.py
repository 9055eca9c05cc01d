"""Derivatives by differences: kinks and noise are seen, smooth functions are exact."""

from collections.abc import Callable
from math import exp, sin, tanh

import numpy as np
import pytest

from tests.fuzz.gradients.derivative import derivative, noise_of

SMOOTH: dict[str, tuple[Callable[[float], float], float]] = {
    "a constant": (lambda t: 3.0, 0.0),
    "a line": (lambda t: 5 + 2 * t, 2.0),
    "curved": (lambda t: sin(1 + 3 * t) + exp(t), 3 * np.cos(1) + 1),
    "small beside its value": (lambda t: 100 + 1e-3 * sin(t), 1e-3),
    "a kink far from the point": (lambda t: 2 * t + abs(t - 0.01), 1.0),
    "computed in float32": (lambda t: float(np.float32(1 + 2 * t)), 2.0),
}
KINKS: dict[str, Callable[[float], float]] = {
    "a kink at the point": lambda t: 2 * t + abs(t),
    "a small kink at the point": lambda t: 2 * t + 1e-2 * abs(t),
    "a kink within the step": lambda t: 2 * t + abs(t - 3e-6),
    "a step at the point": lambda t: 2 * t + (t > 0),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_functions(name: str) -> None:
    function, expected = SMOOTH[name]
    slope = derivative(function)
    assert slope is not None
    assert not slope.differs(expected)
    if expected:
        assert slope.differs(1.01 * expected) and slope.differs(0.0)


@pytest.mark.parametrize("name", KINKS)
def test_functions_with_kinks(name: str) -> None:
    assert derivative(KINKS[name]) is None


@pytest.mark.parametrize("noise", [1e-12, 1e-8])
def test_noise_is_measured(noise: float) -> None:
    rng = np.random.default_rng(0)
    measured = noise_of(lambda t: exp(t) + noise * rng.standard_normal())
    assert noise / 4 < measured < 4 * noise


def test_plateaus_of_a_function_that_is_nothing_but_rounding() -> None:
    def function(t: float) -> float:
        return (1 - tanh(16.4 + t)) * (1 + t)

    slope, exact = derivative(function), 1 - tanh(16.4)
    assert slope is not None
    assert abs(slope.value - (-2 * exact + exact)) > slope.error + 1e-5 * slope.scale
    assert not slope.differs(-2 * exact + exact)
    assert slope.differs(1e-10)
