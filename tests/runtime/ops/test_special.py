"""Special functions by the standard library, their recurrences and gradients."""

import math
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from tests.runtime.gradcheck import check_gradient

EULER = 0.5772156649015329
POINTS = [1e-8, 0.1, 0.5, 0.9, 1.0, 1.5, 2.0, 3.7, 7.9, 8.0, 12.5, 170.3, 1e6, 1e30]
NEGATIVE = [-0.1, -0.5, -1.5, -2.3, -9.7, -30.25]


def computed(fn: Any, values: Any, **static: Any) -> Any:
    """Return the results of ``fn`` for numbers."""
    return fn(burn.tensor(np.asarray(values)), **static).numpy()


def test_lgamma() -> None:
    values = [*POINTS, *NEGATIVE]
    expected = list(map(math.lgamma, values))
    np.testing.assert_allclose(computed(ops.lgamma, values), expected, 1e-13, 1e-14)
    check_gradient(ops.lgamma, np.array([0.2, 1.0, 3.5, 9.0, -0.4]))


def test_lgamma_at_poles_and_infinities() -> None:
    special = computed(ops.lgamma, [0.0, -1.0, -5.0, np.inf, -np.inf, np.nan])
    assert np.isposinf(special[:5]).all() and np.isnan(special[5])


def test_digamma() -> None:
    known = {1.0: -EULER, 0.5: -EULER - 2 * math.log(2), 2.0: 1 - EULER}
    actual = computed(ops.polygamma, list(known), n=0)
    np.testing.assert_allclose(actual, list(known.values()), rtol=1e-13)
    special = computed(ops.polygamma, [0.0, -0.0, -2.0, np.inf, np.nan], n=0)
    np.testing.assert_array_equal(special, [-np.inf, np.inf, np.nan, np.inf, np.nan])


@pytest.mark.parametrize("n", range(5))
def test_polygamma_follows_its_recurrence(n: int) -> None:
    x = np.array([0.1, 0.7, 1.3, 5.5, 20.0, -0.3, -1.6, -4.2])
    step = (-1.0) ** n * math.factorial(n) * x ** (-n - 1)
    here, there = (computed(ops.polygamma, at, n=n) for at in (x, x + 1))
    np.testing.assert_allclose(there - here, step, rtol=1e-9, atol=1e-9)
    points = np.array([0.4, 1.2, 6.0, -0.5])
    check_gradient(lambda x: ops.polygamma(x, n=n), points, order=1)


def test_trigamma_of_one() -> None:
    actual = computed(ops.polygamma, [1.0, np.inf, -3.0], n=1)
    np.testing.assert_allclose(actual, [math.pi**2 / 6, 0.0, np.inf], rtol=1e-13)


def test_erfinv() -> None:
    values = [0.0, 1e-300, 1e-3, 0.3, 0.8499, 0.8501, 0.99, 1 - 1e-9, -0.7, -0.95]
    result = computed(ops.erfinv, values)
    np.testing.assert_allclose(list(map(math.erf, result)), values, rtol=1e-14)
    # Beyond there erfc is the exact one.
    deep = computed(ops.erfinv, [1 - 2**-40, 1 - 2**-50])
    np.testing.assert_allclose(list(map(math.erfc, deep)), [2**-40, 2**-50], rtol=1e-12)
    special = computed(ops.erfinv, [1.0, -1.0, 1.5, np.nan])
    np.testing.assert_array_equal(special, [np.inf, -np.inf, np.nan, np.nan])
    check_gradient(ops.erfinv, np.array([0.0, 0.4, -0.9]))


@pytest.mark.parametrize("order", range(4))
def test_scaled_bessel_i_is_the_integral_over_angles(order: int) -> None:
    values = np.array([0.0, 1e-9, 0.3, -2.0, 7.5, 39.9, 40.1, -300.0, 5000.0])
    angles = (np.arange(4096) + 0.5) * math.pi / 4096
    power = values[:, None] * np.cos(angles) - np.abs(values)[:, None]
    expected = (np.exp(power) * np.cos(order * angles)).mean(-1)
    actual = computed(ops.scaled_bessel_i, values, order=order)
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-15)
    points = np.array([0.4, -1.3, 6.0, 55.0])
    check_gradient(lambda x: ops.scaled_bessel_i(x, order=order), points)


def test_scaled_bessel_i_at_the_ends() -> None:
    ends = computed(ops.scaled_bessel_i, [np.inf, -np.inf, np.nan], order=1)
    np.testing.assert_array_equal(ends, [0.0, 0.0, np.nan])


def test_gcd() -> None:
    x, y = burn.tensor(np.array([12, -8, 0, 0])), burn.tensor(np.array([18, 12, 5, 0]))
    np.testing.assert_array_equal(ops.gcd(x, y).numpy(), [6, 4, 5, 0])


@pytest.mark.parametrize("reverse", [False, True])
def test_logcumsumexp(reverse: bool) -> None:
    x = np.array([[-np.inf, -300.0, -301.0], [0.0, 800.0, -np.inf], [1.0, 1.0, 799.0]])
    turned = x[::-1] if reverse else x
    expected = np.logaddexp.accumulate(turned, axis=0)
    actual = computed(ops.logcumsumexp, x, axis=0, reverse=reverse)
    np.testing.assert_allclose(actual[::-1] if reverse else actual, expected)
    points = np.random.default_rng(0).standard_normal((3, 4))
    check_gradient(lambda x: ops.logcumsumexp(x, axis=-1, reverse=reverse), points)


def test_atan2() -> None:
    ends = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.inf])
    y, x = (part.ravel() for part in np.meshgrid(ends, ends))
    actual = ops.atan2(burn.tensor(y), burn.tensor(x)).numpy()
    np.testing.assert_array_equal(actual, np.arctan2(y, x))
    check_gradient(ops.atan2, np.array([[-0.4], [2.0]]), np.array([1.5, -3.0, 0.7]))


def test_results_have_the_dtype_of_the_operand() -> None:
    x = burn.tensor(np.array([0.5, 0.25], np.float16))
    for y in (ops.lgamma(x), ops.polygamma(x, n=1), ops.erfinv(x)):
        assert y.dtype == x.dtype


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logarithms_and_exponentials_near_zero_are_exact(dtype: str) -> None:
    x = np.array([1e-6, -3e-7, 2e-20, 0.0, 0.5, -0.5], dtype)
    for function, exact in ((ops.log1p, np.log1p), (ops.expm1, np.expm1)):
        result = burn.compile(function)(burn.tensor(x)).numpy()
        np.testing.assert_allclose(result, exact(x), rtol=1e-6)
        check_gradient(function, np.array([0.3, -0.4, 1e-3]))
