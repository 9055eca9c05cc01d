"""Integers as rows of bits."""

import numpy as np

from burn.dtypes import DType
from burn.ops.support import Array, pair
from burn.primitive import primitive


@primitive
def bitwise_not(x: Array) -> Array:
    """Every bit of ``x`` turned."""
    return np.bitwise_not(x)


@primitive
def bitwise_and(x: Array, y: Array) -> Array:
    """The bits that are set in both."""
    return np.bitwise_and(*pair(x, y))


@primitive
def bitwise_or(x: Array, y: Array) -> Array:
    """The bits that are set in either."""
    return np.bitwise_or(*pair(x, y))


@primitive
def bitwise_xor(x: Array, y: Array) -> Array:
    """The bits that are set in exactly one."""
    return np.bitwise_xor(*pair(x, y))


@primitive
def bitwise_left_shift(x: Array, y: Array) -> Array:
    """The bits of ``x`` moved up by ``y``; 0 if that is not less than their number."""
    return np.left_shift(*pair(x, y))


@primitive
def bitwise_right_shift(x: Array, y: Array) -> Array:
    """The bits of ``x`` moved down by ``y``; the sign moves in from above."""
    return np.right_shift(*pair(x, y))


@primitive
def bitcast(x: Array, *, dtype: DType) -> Array:
    """The bits of ``x`` read as ``dtype``, which has as many of them."""
    return x.view(dtype)


bitcast.no_gradient("bits have no gradient")
for _bits in (bitwise_not, bitwise_and, bitwise_or, bitwise_xor):
    _bits.no_gradient("integers have no gradient")
for _shift in (bitwise_left_shift, bitwise_right_shift):
    _shift.no_gradient("integers have no gradient")
