"""Examples of conversions."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from onnx import TensorProto

from burn import dtypes
from burn.dtypes import DType
from tests.strategies.registry import (
    Array,
    Draw,
    Example,
    case,
    extents,
    floats,
    integers,
)

#: The dtypes to convert between: from which version on, by number.
SINCE: dict[int, tuple[DType, int]] = {
    TensorProto.FLOAT: (dtypes.float32, 1),
    TensorProto.DOUBLE: (dtypes.float64, 1),
    TensorProto.FLOAT16: (dtypes.float16, 1),
    TensorProto.INT8: (dtypes.int8, 1),
    TensorProto.INT32: (dtypes.int32, 1),
    TensorProto.INT64: (dtypes.int64, 1),
    TensorProto.UINT8: (dtypes.uint8, 1),
    TensorProto.BOOL: (dtypes.bool_, 1),
    TensorProto.BFLOAT16: (dtypes.bfloat16, 13),
    TensorProto.FLOAT8E4M3FN: (dtypes.float8_e4m3fn, 19),
    TensorProto.FLOAT8E4M3FNUZ: (dtypes.float8_e4m3fnuz, 19),
    TensorProto.FLOAT8E5M2: (dtypes.float8_e5m2, 19),
    TensorProto.FLOAT8E5M2FNUZ: (dtypes.float8_e5m2fnuz, 19),
}
FLOAT8 = [number for number, (_, since) in SINCE.items() if since == 19]


def converted(draw: Draw, version: int) -> tuple[int, Array, dict[str, Any]]:
    """The number of a dtype, what to convert to it, and attributes."""
    allowed = [n for n, (_, since) in SINCE.items() if since <= version]
    to = draw(st.sampled_from(allowed))
    shape = extents(draw)
    if to not in FLOAT8 and draw(st.booleans()):
        source = draw(st.sampled_from([np.int32, np.int64, np.uint8]))
        return to, integers(draw, shape, 0, 100, source), {}
    x = np.abs(10 * floats(draw, shape))
    if to not in FLOAT8:
        return to, x, {}
    x.ravel()[::3] *= 1e5  # out of range
    return to, -x, {"saturate": draw(st.sampled_from([0, 1]))}


@case("Cast")
def cast(draw: Draw, version: int) -> Example:
    to, x, attrs = converted(draw, version)
    if version == 1:
        name = TensorProto.DataType.Name(to)
        return Example({"to": name}, [x], expected=[x.astype(SINCE[to][0])])
    smooth = SINCE[to][0] == np.float64
    return Example({"to": to, **attrs}, [x], smooth=smooth)


@case("CastLike")
def cast_like(draw: Draw, version: int) -> Example:
    to, x, attrs = converted(draw, version)
    like = np.zeros((2, 1, 3), SINCE[to][0])
    stored = frozenset([1])  # onnxruntime takes no NumPy array of some dtypes
    smooth = like.dtype == np.float64  # not of half types, though they are widened
    return Example(attrs, [x, like], smooth=smooth, always_stored=stored)


@case("BitCast")
def bitcast(draw: Draw, version: int) -> Example:
    x = floats(draw, extents(draw))
    return Example({"to": TensorProto.UINT32}, [x], expected=[x.view(np.uint32)])
