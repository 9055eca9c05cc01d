"""Bitwise operations on integers."""

import numpy as np

from burn.dtypes import DType
from burn.ops.support import Array, pair
from burn.primitive import primitive


@primitive(no_gradient="integers have no gradient")
def bitwise_not(x: Array) -> Array:
    """Return ``~x``."""
    return np.bitwise_not(x)


@primitive(no_gradient="integers have no gradient")
def bitwise_and(x: Array, y: Array) -> Array:
    """Return ``x & y``."""
    return np.bitwise_and(*pair(x, y))


@primitive(no_gradient="integers have no gradient")
def bitwise_or(x: Array, y: Array) -> Array:
    """Return ``x | y``."""
    return np.bitwise_or(*pair(x, y))


@primitive(no_gradient="integers have no gradient")
def bitwise_xor(x: Array, y: Array) -> Array:
    """Return ``x ^ y``."""
    return np.bitwise_xor(*pair(x, y))


@primitive(no_gradient="integers have no gradient")
def bitwise_left_shift(x: Array, y: Array) -> Array:
    """Return ``x << y``; 0 if ``y`` is at least the number of bits."""
    return np.left_shift(*pair(x, y))


@primitive(no_gradient="integers have no gradient")
def bitwise_right_shift(x: Array, y: Array) -> Array:
    """Return ``x >> y``, with the sign extended."""
    return np.right_shift(*pair(x, y))


@primitive(no_gradient="bits have no gradient")
def bitcast(x: Array, *, dtype: DType) -> Array:
    """Return the bits of ``x`` reinterpreted as ``dtype``, of the same size."""
    return x.view(dtype)
