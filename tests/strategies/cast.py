"""Examples of conversions."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from onnx import TensorProto
from onnx.numpy_helper import to_float8e8m0

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
#: Smaller dtypes, of which onnxruntime hands out no NumPy arrays.
SMALL: dict[int, tuple[DType, int]] = {
    TensorProto.UINT4: (dtypes.uint4, 21),
    TensorProto.INT4: (dtypes.int4, 21),
    TensorProto.FLOAT4E2M1: (dtypes.float4_e2m1fn, 23),
    TensorProto.FLOAT8E8M0: (dtypes.float8_e8m0fnu, 24),
    TensorProto.UINT2: (dtypes.uint2, 25),
    TensorProto.INT2: (dtypes.int2, 25),
}
FLOAT8 = [number for number, (_, since) in SINCE.items() if since == 19]


def converted(draw: Draw, version: int) -> tuple[int, Array, dict[str, Any]]:
    """The number of a dtype, an array to convert to it, and attributes."""
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


def small(draw: Draw, version: int) -> tuple[int, Array, dict[str, Any], Array] | None:
    """As :func:`converted`, to a small dtype, with the result; None without one."""
    allowed = [n for n, (_, since) in SMALL.items() if since <= version]
    if not allowed or draw(st.booleans()):
        return None
    to = draw(st.sampled_from(allowed))
    target, shape = SMALL[to][0], extents(draw)
    if to == TensorProto.FLOAT8E8M0:
        exponents = integers(draw, shape, -120, 120, np.float32)
        x = np.exp2(exponents) * integers(draw, shape, 4, 7, np.float32) / 4
        mode = draw(st.sampled_from(["up", "down", "nearest"]))
        saturate = draw(st.sampled_from([0, 1]))
        y = to_float8e8m0(x, bool(saturate), mode).view(target)
        return to, x, {"round_mode": mode, "saturate": saturate}, y
    if dtypes.is_float(target):
        x = draw(st.sampled_from([1, 100])) * floats(draw, shape)
        return to, x, {}, x.astype(target)
    # Bits that the dtype has no room for are lost.
    x = integers(draw, shape, -100, 100, np.int32)
    bits = {"4": 4, "2": 2}[target.name[-1]]
    kept = x & (2**bits - 1)
    if target in dtypes.SIGNED:
        kept = np.where(kept >= 2 ** (bits - 1), kept - 2**bits, kept)
    return to, x, {}, kept.astype(np.int32).astype(target)


@case("Cast")
def cast(draw: Draw, version: int) -> Example:
    result = small(draw, version)
    if result is not None:
        to, x, attrs, y = result
        return Example({"to": to, **attrs}, [x], smooth=False, expected=[y])
    to, x, attrs = converted(draw, version)
    if version == 1:
        name = TensorProto.DataType.Name(to)
        return Example({"to": name}, [x], expected=[x.astype(SINCE[to][0])])
    smooth = SINCE[to][0] == np.float64
    return Example({"to": to, **attrs}, [x], smooth=smooth)


@case("CastLike")
def cast_like(draw: Draw, version: int) -> Example:
    result = small(draw, version)
    if result is not None:
        to, x, attrs, y = result
        small_like = np.zeros((2, 1, 3)).astype(SMALL[to][0])
        one = frozenset([1])
        return Example(
            attrs, [x, small_like], smooth=False, always_stored=one, expected=[y]
        )
    to, x, attrs = converted(draw, version)
    like = np.zeros((2, 1, 3), SINCE[to][0])
    stored = frozenset([1])  # onnxruntime takes no NumPy array of some dtypes
    smooth = like.dtype == np.float64  # not of half types, though they are widened
    return Example(attrs, [x, like], smooth=smooth, always_stored=stored)


@case("BitCast")
def bitcast(draw: Draw, version: int) -> Example:
    x = floats(draw, extents(draw))
    return Example({"to": TensorProto.UINT32}, [x], expected=[x.view(np.uint32)])
