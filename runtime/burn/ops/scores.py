"""Normalization of features and scores of a sample (ONNX-ML)."""

import math
from typing import Any

from burn.ops.elementwise import abs as abs_, exp, log, sign, sqrt
from burn.ops.logic import where
from burn.ops.reduction import max as max_, sum as sum_
from burn.ops.support import Array
from burn.primitive import composite

#: Smaller magnitudes count as zero in :func:`softmax_zero`.
_ZERO = 1e-7
#: The constant of Winitzki's approximation of the inverse error function.
_WINITZKI = 0.147


@composite(outputs=1)
def softmax_zero(x: Array, *, axis: int = -1) -> Any:
    """Return ``exp(x)`` divided by its sum over ``axis``, with zeros remaining zero."""
    largest = max_(x, axis, keepdims=True)
    parts = where(abs_(x) > _ZERO, exp(x - largest), 0.0)
    return parts / sum_(parts, axis, keepdims=True)


@composite(outputs=1)
def probit(x: Array) -> Any:
    """Return the normal quantile at ``x`` in (0, 1), to three digits.

    It is the square root of 2 times the inverse error function of ``2 * x - 1``, which
    is approximated as ai.onnx.ml has it.
    """
    y = x * 2.0 - 1.0
    tail = log((1.0 - y) * (1.0 + y))
    v = tail * 0.5 + 2.0 / (math.pi * _WINITZKI)
    return sign(y) * sqrt(sqrt(v * v - tail / _WINITZKI) - v) * math.sqrt(2.0)


@composite(outputs=1)
def normalize(x: Array, *, norm: str = "l2", axis: int = -1) -> Any:
    """Return ``x`` divided by its "l1" or "l2" norm, or its maximum ("max").

    Vectors whose norm is 0 are unchanged.
    """
    if norm == "max":
        length = max_(x, axis, keepdims=True)
    elif norm == "l1":
        length = sum_(abs_(x), axis, keepdims=True)
    else:
        length = sqrt(sum_(x * x, axis, keepdims=True))
    return x / where(length == 0.0, 1.0, length)
