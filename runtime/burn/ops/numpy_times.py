"""Estimates of the time of NumPy's kernels.

A primitive declares one of these rules as its ``numpy_time``. A rule receives the
non-empty shapes of the operands that are tensors, and the static arguments. It returns
nanoseconds.
"""

from math import prod
from typing import Any

Shape = tuple[int, ...]

# The nanoseconds of a multiplication of matrices, and of an element of a window.
_MULTIPLICATION, _TAP = 0.025, 0.6
# The nanoseconds of a gate in a step of a recurrent layer, which has several calls, and
# of a multiplication of its few rows.
_GATE, _ROW_MULTIPLICATION = 8_000, 0.07


def matrix_product(x: Shape, y: Shape, *_: Shape, **static: Any) -> float:
    """Return the time of a product of matrices, of which one may be transposed."""
    batch = max(prod(x[:-2]), prod(y[:-2]))
    return _MULTIPLICATION * batch * prod(x[-2:-1]) * prod(y[-2:])


def convolution(
    x: Shape, weight: Shape, *_: Shape, stride: Any = 1, **static: Any
) -> float:
    """Return the time to copy the windows, and to multiply them by the weights."""
    apart = prod(stride) if isinstance(stride, list | tuple) else stride ** (len(x) - 2)
    return transposed_convolution(x, weight) / apart


def transposed_convolution(x: Shape, weight: Shape, *_: Shape, **static: Any) -> float:
    """Return the time of a window for each element of ``x``."""
    taps = prod(x) * prod(weight[2:])
    return _TAP * taps + _MULTIPLICATION * taps * prod(weight[:2]) / x[1]


def recurrent(x: Shape, w: Shape, r: Shape, *_: Shape, **static: Any) -> float:
    """Return the time of the steps of a recurrent layer, and of their products."""
    steps, batch = x[:2] if not static.get("layout", 0) else x[1::-1]
    directions, width, hidden = r
    gates = width // max(hidden, 1)
    work = steps * batch * directions * width * (w[2] + hidden)
    return _GATE * steps * directions * gates + _ROW_MULTIPLICATION * work
