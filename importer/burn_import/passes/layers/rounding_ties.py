"""Frequency of results that depend on how a quotient is rounded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from burn.dtypes import DType, integer_limits
from burn_ir.types import Array

#: Quotients this close to a tie, relative to their size, may round to either side.
CLOSENESS = 2.0**-22
#: Ties among the results of scales without a simple ratio are rarer.
RARE = 1e-3
#: The sums that are examined.
SUMS = np.arange(1, 1025, dtype=np.float64)


def dequantized(
    array: Array | None, dtype: DType, scale: Array, zero_point: Array | None
) -> Array:
    """Return the numbers of ``array``, of all integers of ``dtype`` if it is None."""
    limits = integer_limits(dtype)
    values = np.arange(limits.min, limits.max + 1) if array is None else array
    shift = 0 if zero_point is None else int(zero_point.reshape(()))
    integers = np.unique(values).astype(np.float32) - np.float32(shift)
    return integers * scale.reshape(())


def is_order_irrelevant(results: Array, scale: Array, zero_point: Array | None) -> bool:
    """Return whether ``results`` may be rounded before a zero point is added or after.

    Ties go to the even number, which differs if the zero point is odd.
    """
    if zero_point is None or not zero_point.any():
        return True
    quotients, shift = results / scale.reshape(()), np.float32(zero_point.reshape(()))
    is_equal = np.rint(quotients) + shift == np.rint(quotients + shift)
    return bool(np.count_nonzero(~is_equal) <= max(RARE * is_equal.size, 1))


def are_ties_rare(quotients: Array) -> bool:
    """Return whether few of the quotients are halfway between integers.

    Sums of integers are rounded to the even one, sums of floats to either.
    """
    inside = np.abs(quotients[np.abs(quotients) < 256])
    distance = np.abs(inside - np.trunc(inside) - 0.5)
    ties = distance <= CLOSENESS * np.maximum(inside, 1)
    return bool(np.count_nonzero(ties) <= max(RARE * inside.size, 1))


def totals(scales: Sequence[Array], result: Array, count: float) -> Array:
    """Return the quotients of sums of integers times all scales, over ``count``."""
    factor: Array = np.ones(1) / (count * float(result.reshape(())))
    for scale in scales:
        factor = factor * scale.astype(np.float64).reshape(-1)
    return np.outer(SUMS, factor)
