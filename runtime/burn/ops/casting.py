"""Conversions between dtypes."""

from typing import Any

import numpy as np

from burn import dtypes
from burn.dtypes import DType
from burn.ops import bounds
from burn.ops.support import Array
from burn.primitive import primitive


@primitive(
    traceable=True,
    removable=True,
    infallible=True,
    bound=bounds.of_first,
    autocast="keep",
    memory_bound=True,
    numpy_time=1.5,
)
def cast(x: Array, *, dtype: DType) -> Array:
    """Return ``x`` converted to ``dtype``.

    Floats are truncated to integers; nonzero values are True. Floats become text of 8
    significant digits, and text is parsed as a number.
    """
    if dtype == dtypes.string and x.dtype != dtype:
        return _as_text(x)
    if x.dtype == dtypes.string and dtype == dtypes.bool_:
        return x.astype(np.float64) != 0
    if x.dtype in _TINY and dtype in _TINY:  # which know nothing of each other
        x = x.astype(np.float32 if dtypes.is_float(x.dtype) else np.int32)
    return x.astype(dtype, copy=False)


#: Dtypes of at most 8 bits that NumPy does not have itself.
_TINY = (*dtypes.FLOAT8, dtypes.int2, dtypes.int4, dtypes.uint2, dtypes.uint4)


def _as_text(x: Array) -> Array:
    if not dtypes.is_float(x.dtype):
        numbers = [str(int(item)) for item in x.ravel().tolist()]
        return np.array(numbers, object).reshape(x.shape)
    special = {"inf": "INF", "-inf": "-INF", "nan": "NaN"}
    texts = [f"{float(item):.8g}" for item in x.ravel()]
    return np.array([special.get(t, t) for t in texts], object).reshape(x.shape)


@cast.vjp
def _(grad: Any, out: Any, x: Any, *, dtype: DType) -> Any:
    if not (dtypes.is_float(dtype) or dtypes.is_complex(dtype)):
        return None
    return lambda: cast(grad, dtype=x.dtype)


cast.declare_reads()
