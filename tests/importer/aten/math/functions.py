"""Elementwise functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np

from tests.importer.aten.case import (
    Case,
    bools,
    case,
    f32,
    i32,
    i64,
    u8,
)
from tests.importer.aten.inputs import F32, POSITIVE, UNIT, WHOLE, X, single


def each(function: Callable[[float], float]) -> Callable[..., Any]:
    """Return ``function`` of each element, in float32."""
    return lambda x: np.vectorize(function)(x.astype(np.float64)).astype(np.float32)


def digamma(x: float) -> float:
    """Return the derivative of the log-gamma function."""
    step = 1e-5
    return (math.lgamma(x + step) - math.lgamma(x - step)) / (2 * step)


def trigamma(x: float) -> float:
    """Return the sum of ``1 / (x + k) ** 2``; an integral bounds the tail."""
    count = 2000
    return sum((x + k) ** -2 for k in range(count)) + 1 / (x + count - 0.5)


#: Functions with floating results: ATen's name, NumPy's formula, the domain.
FUNCTIONS: tuple[tuple[str, Callable[..., Any], Any], ...] = (
    ("exp", np.exp, X),
    ("exp2", np.exp2, X),
    ("expm1", np.expm1, X),
    ("log", np.log, POSITIVE),
    ("log2", np.log2, POSITIVE),
    ("log10", np.log10, POSITIVE),
    ("log1p", np.log1p, POSITIVE),
    ("sqrt", np.sqrt, POSITIVE),
    ("rsqrt", lambda x: 1 / np.sqrt(x), POSITIVE),
    ("reciprocal", lambda x: 1 / x, POSITIVE),
    ("sin", np.sin, X),
    ("cos", np.cos, X),
    ("tan", np.tan, UNIT),
    ("asin", np.arcsin, UNIT),
    ("acos", np.arccos, UNIT),
    ("atan", np.arctan, X),
    ("sinh", np.sinh, X),
    ("cosh", np.cosh, X),
    ("tanh", np.tanh, X),
    ("asinh", np.arcsinh, X),
    ("acosh", np.arccosh, f32("n", 3, 4, low=1.1)),
    ("atanh", np.arctanh, UNIT),
    ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), X),
    ("erf", each(math.erf), X),
    ("erfc", each(math.erfc), X),
    (
        "erfinv",
        each(lambda y: NormalDist().inv_cdf((1 + y) / 2) * math.sqrt(0.5)),
        UNIT,
    ),
    ("lgamma", each(math.lgamma), X),
    ("digamma", each(digamma), X),
    ("deg2rad", np.deg2rad, X),
    ("rad2deg", np.rad2deg, X),
    ("sinc", np.sinc, X),
    ("logit", lambda x: np.log(x / (1 - x)), f32("n", 3, 4, low=0.1, high=0.9)),
)
#: Functions whose result has the dtype of the operand.
SAME: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("abs", np.abs),
    ("neg", np.negative),
    ("sign", np.sign),
    ("sgn", np.sign),
    ("square", np.square),
    ("positive", lambda x: x),
    ("ceil", np.ceil),
    ("floor", np.floor),
    ("trunc", np.trunc),
    ("round", np.round),
    ("fix", np.trunc),
)

#: Functions of integers, which are computed in float32.
OF_INTEGERS: tuple[tuple[str, Callable[..., Any], Any], ...] = (
    ("exp", np.exp, i64("n", 3, 4, low=-2, high=3)),
    ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), i32("n", 3, 4)),
    ("sqrt", np.sqrt, u8("n", 3, 4)),
    ("rsqrt", lambda x: 1 / np.sqrt(x), i64("n", 3, 4, low=1)),
    ("reciprocal", lambda x: 1 / x, i64("n", 3, 4, low=1)),
    ("log1p", np.log1p, i64("n", 3, 4, low=1)),
    ("tanh", np.tanh, bools("n", 3, 4)),
    ("erf", each(math.erf), i64("n", 3, 4)),
)


def integers(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``f`` of integers, in float32."""
    return single(lambda x: f(x.astype(F32)))


CASES: tuple[Case, ...] = (
    *(case(f"{n}.default", single(f), self=x) for n, f, x in FUNCTIONS),
    *(
        case(f"{n}.default", integers(f), label="int", self=x)
        for n, f, x in OF_INTEGERS
    ),
    *(case(f"{name}.default", f, self=X) for name, f in SAME),
    *(case(f"{name}.default", f, label="int", self=WHOLE) for name, f in SAME),
)
