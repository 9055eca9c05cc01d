"""Conversion between dtypes of the same kind, for arrays and for whole records.

A record of Burn has one dtype for all floats and another for all integers.
"""

from typing import Literal, TypeAlias

import numpy as np

from burn import dtypes
from burn.record.dtypes import Array, DType
from burn.record.errors import RecordError

Precision: TypeAlias = Literal["full", "half", "double"]

#: The dtypes of floats and of integers, as in Burn's settings of these names.
PRECISIONS: dict[Precision, tuple[DType, DType]] = {
    "full": (dtypes.float32, dtypes.int32),
    "half": (dtypes.float16, dtypes.int16),
    "double": (dtypes.float64, dtypes.int64),
}


def at_precision(dtype: DType, precision: Precision) -> DType:
    """Return ``dtype`` at a precision; only floats and integers change."""
    floating, integer = PRECISIONS[precision]
    if dtypes.is_float(dtype):
        return floating
    return integer if dtypes.is_integer(dtype) else dtype


def are_alike(a: DType, b: DType) -> bool:
    """Return whether both are floats, both integers or both complex."""
    kinds = (dtypes.is_float, dtypes.is_integer, dtypes.is_complex)
    return a == b or any(kind(a) and kind(b) for kind in kinds)


def converted(array: Array, dtype: DType) -> Array:
    """Return ``array`` in another dtype of its kind, floats rounded to the nearest.

    Raises:
        RecordError: an integer is out of range, or a finite float would overflow.
    """
    if array.dtype == dtype:
        return array
    with np.errstate(all="ignore"):
        result = array.astype(dtype)
    if dtypes.is_integer(dtype):
        bad = _out_of_range(array, dtype)
    else:
        bad = int(np.count_nonzero(np.isfinite(array) & ~np.isfinite(result)))
    if bad:
        name = dtypes.name_of(dtype)
        raise RecordError(f"{bad} of {array.size} values do not fit {name}")
    return result


def _out_of_range(array: Array, dtype: DType) -> int:
    limits = dtypes.integer_limits(dtype)
    wide = array if array.dtype.itemsize > 1 else array.astype(np.int64)
    below = wide < int(limits.min) if wide.dtype.kind == "i" else np.False_
    return int(np.count_nonzero(below | (wide > int(limits.max))))
