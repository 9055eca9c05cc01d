"""The dtypes of standalone modules: those of NumPy."""

from typing import Any

import numpy as np

from burn.dtypes import (
    DType,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

SIGNED = (int8, int16, int32, int64)
UNSIGNED = (uint8, uint16, uint32, uint64)
FLOAT8: tuple[DType, ...] = ()
FLOATS = (float16, float32, float64)
#: Float types whose sums and products are accumulated in float32.
HALVES = frozenset({float16})


def integer_limits(dtype: DType) -> Any:
    """An object with the ``min`` and ``max`` of an integer dtype."""
    return np.iinfo(dtype)


def step(dtype: DType) -> float:
    """The distance from 1 to the next larger number of a floating dtype."""
    return float(np.finfo(dtype).eps)


def largest(dtype: DType) -> float:
    """The largest number of a floating dtype."""
    return float(np.finfo(dtype).max)
