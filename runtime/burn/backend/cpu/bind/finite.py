"""Checks for finite numbers; programs are valid for finite inputs and results only."""

from math import isfinite, isnan
from typing import Any

import numpy as np

from burn import dtypes
from burn.box import Box, Parameter
from burn.ops.support import Array


class NotFiniteError(Exception):
    """A program for finite numbers met an infinity or NaN."""


#: Of so many numbers two extremes are found in less time than one sum.
_MANY = 20_000


def is_finite(array: Any) -> bool:
    """Return whether ``array`` contains no infinity and no NaN.

    A finite sum proves it; an overflowing sum proves nothing.
    """
    if array.dtype.kind == "f":
        if array.size < _MANY:
            return isfinite(np.add.reduce(array, axis=None))
        sum_ = _total(array)
        if sum_ is not None and isfinite(sum_):
            return True
        extremes = (np.maximum.reduce, np.minimum.reduce)
        return all(isfinite(reduce(array, axis=None)) for reduce in extremes)
    if dtypes.is_complex(array.dtype):
        return bool(np.isfinite(array).all())
    return not dtypes.is_float(array.dtype) or is_finite(array.astype(np.float32))


def has_nan(array: Any) -> bool:
    """Return whether ``array`` contains NaN; infinities do not count."""
    return not is_finite(array) and bool(np.isnan(array).any())


def refuse_nan(constant: Any) -> None:
    """Raise an error if a constant contains NaN, to use the recorded plan."""
    if isinstance(constant, list | tuple):
        for item in constant:
            refuse_nan(item)
    elif isinstance(constant, np.ndarray) and has_nan(constant):
        raise NotFiniteError


def check_box(box: Box, array: Array, may_change: bool) -> None:
    """Check the value that a plan reads from ``box``.

    Buffers that stay as they are may have infinities, as other constants: masks have.

    Raises:
        NotFiniteError: it has a number that the program is not valid for.
    """
    if isinstance(box, Parameter) or may_change:
        if not is_finite(array):
            raise NotFiniteError
    else:
        refuse_nan(array)


def expect_numbers(array: Array) -> None:
    """Leave the program if ``array`` contains NaN."""
    sum_ = _total(array)
    if isnan(np.add.reduce(array, axis=None) if sum_ is None else sum_):
        raise NotFiniteError


def _total(array: Array) -> float | None:
    """Return the sum of a large array, None if NumPy should add it."""
    from burn.backend.cpu.onednn.kernels.large_sums import total  # with oneDNN

    return total(array)
