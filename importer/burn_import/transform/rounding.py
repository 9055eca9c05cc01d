"""Conversion of arrays to another floating dtype."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from burn.dtypes import DType
from burn_ir.types import Array


def rounded(array: Array, target: DType) -> Array:
    """Return ``array`` in ``target``; finite numbers stay finite, strides 0 stay."""
    if array.dtype == target:
        return array
    # An axis of stride 0 is converted once and broadcast again.
    once = tuple(slice(0, 1) if step == 0 else slice(None) for step in array.strides)
    few = array[once]
    wide = few.astype(np.float64 if few.dtype.itemsize > 4 else np.float32)
    most = float(ml_dtypes.finfo(target).max)  # type: ignore[no-untyped-call]
    if most < float(ml_dtypes.finfo(wide.dtype).max):  # type: ignore[no-untyped-call]
        wide = np.where(np.isfinite(wide), np.clip(wide, -most, most), wide)
    result = np.broadcast_to(wide.astype(target), array.shape)
    result.flags.writeable = False
    return result
