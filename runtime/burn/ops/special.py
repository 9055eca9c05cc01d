"""Special functions: gamma, error and Bessel functions, the greatest common divisor.

Floating ones are computed in float64, and rounded to the operand's dtype.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from burn.ops.elementwise import exp, sign
from burn.ops.support import Array, pair
from burn.primitive import primitive

#: Arguments below this are moved above it before a series in 1 / x is summed.
_LARGE = 8.0
#: Arguments of Bessel functions from which asymptotic expansions are exact.
_LARGE_BESSEL = 40.0
#: Bernoulli's numbers of even order, from the second.
_BERNOULLI = (
    *(1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6),
    *(-3617 / 510, 43867 / 798),
)
# Rational approximations of normal quantiles (M. J. Wichura, algorithm AS 241), with a
# relative error of 1e-16: in the middle, up to 1.4e-11 from the ends, and beyond.
_MIDDLE = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853)
    + (45921.953931549871457, 13731.693765509461125, 1971.5909503065514427)
    + (133.14166789178437745, 3.387132872796366608),
    (5226.495278852854561, 28729.085735721942674, 39307.89580009271061)
    + (21213.794301586595867, 5394.1960214247511077, 687.1870074920579083)
    + (42.313330701600911252, 1.0),
)
_SIDES = (
    (7.7454501427834140764e-4, 2.27238449892691845833e-2, 0.24178072517745061177)
    + (1.27045825245236838258, 3.64784832476320460504, 5.7694972214606914055)
    + (4.6303378461565452959, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 1.51986665636164571966e-2)
    + (0.14810397642748007459, 0.68976733498510000455, 1.6763848301838038494)
    + (2.05319162663775882187, 1.0),
)
_ENDS = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3)
    + (2.65321895265761230930e-2, 0.29656057182850489123, 1.7848265399172913358)
    + (5.4637849111641143699, 6.6579046435011037772),
    (2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5)
    + (7.868691311456132591e-4, 1.48753612908506148525e-2, 0.13692988092273580531)
    + (0.59983220655588793769, 1.0),
)


@primitive(infallible=True)
def lgamma(x: Array) -> Array:
    """Return the logarithm of the gamma function's absolute value; inf at poles."""
    work = x.astype(np.float64)
    with np.errstate(all="ignore"):
        size = np.where(work < 0.5, 1.0 - work, work)
        small = size < _LARGE
        moved = np.where(small, size + _LARGE, size)
        rest = np.ones_like(moved)
        for k in range(int(_LARGE)):
            rest = rest * np.where(small, size + k, 1.0)
        series = sum(
            b / (2 * k * (2 * k - 1)) * moved ** (1 - 2 * k)
            for k, b in enumerate(_BERNOULLI, 1)
        )
        half = 0.5 * math.log(2 * math.pi)
        value = (moved - 0.5) * np.log(moved) - moved + half + series - np.log(rest)
        value = np.where(np.isinf(size), np.inf, value)
        mirrored = np.log(np.pi / np.abs(_sine(work))) - value
        result = np.where(work < 0.5, mirrored, value)
    return np.where(np.isinf(work), np.inf, result).astype(x.dtype)


@lgamma.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any) -> Any:
    return grad * polygamma(x, n=0)


@primitive(infallible=True)
def polygamma(x: Array, *, n: int) -> Array:
    """Return the derivative of order ``n`` of the digamma function.

    At its poles digamma is NaN, except at 0, where it is infinite with the opposite
    sign of the zero; higher orders are infinite.
    """
    work = x.astype(np.float64)
    with np.errstate(all="ignore"):
        mirrored = work < 0.5
        value = _polygamma(np.where(mirrored, 1.0 - work, work), n)
        angle = np.pi * (work - np.rint(work))
        slope = _horner(1.0 / np.tan(angle), _cotangent(n)) * np.pi ** (n + 1)
        result = np.where(mirrored, (-1.0) ** n * value - slope, value)
        pole = (work <= 0) & (work == np.floor(work))
        at_pole: Any = np.inf if n % 2 else -np.inf
        if n == 0:
            at_pole = np.where(work == 0, np.copysign(np.inf, -work), np.nan)
        result = np.where(pole, at_pole, result)
    return result.astype(x.dtype)


@polygamma.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any, *, n: Any) -> Any:
    return grad * polygamma(x, n=n + 1)


@primitive(infallible=True)
def erfinv(x: Array) -> Array:
    """Return the inverse error function; infinite at -1 and 1, NaN beyond."""
    work = x.astype(np.float64)
    with np.errstate(all="ignore"):
        half, size = 0.5 * work, np.abs(work)
        central = 0.180625 - half * half
        middle = half * _horner(central, _MIDDLE[0]) / _horner(central, _MIDDLE[1])
        depth = np.sqrt(-np.log(0.5 - 0.5 * size))
        near, far = depth - 1.6, depth - 5.0
        sides = _horner(near, _SIDES[0]) / _horner(near, _SIDES[1])
        ends = _horner(far, _ENDS[0]) / _horner(far, _ENDS[1])
        outer = np.copysign(np.where(depth <= 5.0, sides, ends), work)
        result = np.where(size <= 0.85, middle, outer) * math.sqrt(0.5)
        result = np.where(size == 1.0, np.copysign(np.inf, work), result)
    return np.where(size > 1.0, np.nan, result).astype(x.dtype)


@erfinv.vjp_reading(results=(0,))
def _(grad: Any, out: Any, x: Any) -> Any:
    return grad * exp(out * out) * (0.5 * math.sqrt(math.pi))


@primitive(infallible=True)
def scaled_bessel_i(x: Array, *, order: int) -> Array:
    """Return ``exp(-abs(x))`` times the modified Bessel function of the first kind.

    ``order`` is a natural number.
    """
    size: Array = np.abs(x.astype(np.float64))
    near, far = np.minimum(size, _LARGE_BESSEL), np.maximum(size, _LARGE_BESSEL)
    with np.errstate(all="ignore"):
        value: Array = np.where(
            size < _LARGE_BESSEL, _bessel_series(near, order), _bessel_tail(far, order)
        )
    value = np.where(np.isnan(size), np.nan, value)
    return (np.where(x < 0, (-1.0) ** order, 1.0) * value).astype(x.dtype)


@scaled_bessel_i.vjp
def _(grad: Any, out: Any, x: Any, *, order: Any) -> Any:
    before = scaled_bessel_i(x, order=abs(order - 1))
    after = scaled_bessel_i(x, order=order + 1)
    return grad * (0.5 * (before + after) - sign(x) * out)


def _bessel_series(x: Array, order: int) -> Array:
    """Return the scaled function of numbers from 0 to ``_LARGE_BESSEL`` by its power
    series, whose terms are all positive.
    """
    term: Array = np.exp(-x) * (0.5 * x) ** order / math.factorial(order)
    total = term
    for k in range(1, 100):
        term = term * (0.25 * x * x / (k * (k + order)))
        total = total + term
    return total


def _bessel_tail(x: Array, order: int) -> Array:
    """Return the scaled function of larger numbers by its asymptotic expansion."""
    term: Array = np.ones_like(x)
    total = term
    for k in range(1, 20):
        term = term * (((2 * k - 1) ** 2 - 4 * order**2) / (8 * k * x))
        total = total + term
    return total / np.sqrt(2 * np.pi * x)


@primitive(infallible=True, no_gradient="integers have no gradient")
def gcd(x: Array, y: Array) -> Array:
    """Return the greatest common divisor of integers; that of two zeros is 0."""
    return np.gcd(*pair(x, y))


def _polygamma(x: Array, n: int) -> Array:
    """Return the polygamma function of positive numbers, by recurrence and series."""
    steps = int(_LARGE) + n
    moved = x + steps
    if n == 0:
        total = np.log(moved) - 0.5 / moved
        for k, b in enumerate(_BERNOULLI, 1):
            total = total - b / (2 * k) * moved ** (-2 * k)
        for k in range(steps):
            total = total - 1.0 / (x + k)
        return np.where(np.isinf(x), x, total)
    total = math.factorial(n - 1) * moved ** (-n)
    total = total + 0.5 * math.factorial(n) * moved ** (-n - 1)
    for k, b in enumerate(_BERNOULLI, 1):
        factor = math.factorial(2 * k + n - 1) / math.factorial(2 * k)
        total = total + b * factor * moved ** (-2 * k - n)
    for k in range(steps):
        total = total + math.factorial(n) * (x + k) ** (-n - 1)
    return (-1.0) ** (n + 1) * total


def _cotangent(n: int) -> list[float]:
    """Return the derivative of order ``n`` of the cotangent, as a polynomial in it."""
    polynomial = [1.0, 0.0]
    for _ in range(n):
        polynomial = list(np.polymul([-1.0, 0.0, -1.0], np.polyder(polynomial)))
    return polynomial


def _sine(x: Array) -> Array:
    """Return ``sin(pi * x)`` with the correct sign, exact at integers."""
    return np.sin(np.pi * (x - np.rint(x)))


def _horner(x: Array, coefficients: Sequence[float]) -> Array:
    value: Any = coefficients[0]
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value + np.zeros_like(x)
