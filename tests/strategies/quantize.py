"""Examples of quantized operators."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from burn import dtypes
from burn.dtypes import DType
from tests.strategies.registry import (
    Array,
    Draw,
    Example,
    case,
    extents,
    floats,
    generator,
    integers,
)

FLOAT8 = (
    dtypes.float8_e4m3fn,
    dtypes.float8_e4m3fnuz,
    dtypes.float8_e5m2,
    dtypes.float8_e5m2fnuz,
)
OCTETS = (dtypes.uint8, dtypes.int8)
#: The dtypes to quantize to that came with each version.
SINCE: dict[int, tuple[DType, ...]] = {
    10: OCTETS,
    19: FLOAT8,
    21: (dtypes.uint16, dtypes.int16, dtypes.uint4, dtypes.int4),
    23: (dtypes.float4_e2m1fn,),
    25: (dtypes.uint2, dtypes.int2),
}
NUMBER = {
    dtypes.uint8: 2,
    dtypes.int8: 3,
    dtypes.uint16: 4,
    dtypes.int16: 5,
    dtypes.float16: 10,
    **{d: 17 + i for i, d in enumerate(FLOAT8)},
    dtypes.uint4: 21,
    dtypes.int4: 22,
    dtypes.float4_e2m1fn: 23,
    dtypes.uint2: 25,
    dtypes.int2: 26,
}


def quantized_dtype(draw: Draw, version: int) -> DType:
    """A dtype to quantize to."""
    allowed = [d for since, new in SINCE.items() if since <= version for d in new]
    result: DType = draw(st.sampled_from(allowed))
    return result


def wide(array: Array) -> Array:
    """``array`` in float64."""
    return array.astype(np.float32).astype(np.float64)


def limits(dtype: DType) -> tuple[int, int]:
    """The least and the greatest number to draw of a dtype."""
    if dtypes.is_float(dtype):
        return -6, 6
    result = dtypes.integer_limits(dtype)
    return int(result.min), int(result.max)


def numbers_of(draw: Draw, shape: tuple[int, ...], dtype: DType) -> Array:
    """Quantized numbers over the whole range of a dtype."""
    return (
        integers(draw, shape, *limits(dtype), np.int32).astype(np.float32).astype(dtype)
    )


def scales(
    draw: Draw, shape: tuple[int, ...], dtype: Any = np.float32, factor: float = 1.0
) -> Array:
    """Scales between 0.02 and 0.2, which make ties improbable, times ``factor``."""
    numbers = generator(draw).uniform(0.02 * factor, 0.2 * factor, shape)
    return np.asarray(numbers).astype(dtype)


def granularity(
    draw: Draw, version: int, shape: tuple[int, ...]
) -> tuple[tuple[int, ...], dict[str, Any]]:
    """The shape of a scale, and the attributes that go with it."""
    kinds = ["one"] + ["axis"] * (version >= 13) + ["blocks"] * (version >= 21)
    kind = draw(st.sampled_from(kinds))
    if kind == "one":
        return draw(st.sampled_from([(), (1,)] if version >= 13 else [()])), {}
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    if kind == "axis":
        return (shape[axis],), {"axis": axis}
    size = draw(st.integers(1, shape[axis]))
    blocks = list(shape)
    blocks[axis] = -(-shape[axis] // size)
    return tuple(blocks), {"axis": axis, "block_size": size}


def unspread(values: Array, shape: tuple[int, ...], attrs: dict[str, Any]) -> Array:
    """``values`` for each element: the specification's three granularities."""
    if values.size == 1:
        return np.broadcast_to(values.reshape(()), shape)
    axis = attrs["axis"] % len(shape)
    if "block_size" in attrs:
        index = np.arange(shape[axis]) // attrs["block_size"]
        taken: Array = np.take(values, index, axis)
        return taken
    places = [1] * len(shape)
    places[axis] = -1
    return np.broadcast_to(values.reshape(places), shape)


@case("QuantizeLinear")
def quantize_linear(draw: Draw, version: int) -> Example:
    target = quantized_dtype(draw, version)
    shape = extents(draw)
    size, attrs = granularity(draw, version, shape)
    half = version >= 19 and draw(st.booleans())
    dtype = np.float16 if half else np.float32
    scale = scales(draw, size, dtype)
    low, high = limits(target)
    reach = min((high - low) * 0.07, 1000)  # a quotient that float16 has
    x = floats(draw, shape, dtype) * np.asarray(reach, dtype)
    zero_point: Array | None = np.zeros(size, target)
    if not dtypes.is_float(target):
        zero_point = numbers_of(draw, size, target)
    if version >= 21 and (dtypes.is_float(target) or draw(st.booleans())):
        zero_point, attrs["output_dtype"] = None, NUMBER[target]
    if target in FLOAT8 and draw(st.booleans()):
        attrs["saturate"] = 0
    if not half and version >= 23 and draw(st.booleans()):
        attrs["precision"] = NUMBER[dtypes.float16]
    operands = [x, scale] + ([] if zero_point is None else [zero_point])
    stored = frozenset([2]) if zero_point is not None else frozenset()
    expected = None
    if half or "precision" in attrs:
        expected = [quantized(x, scale, zero_point, target, attrs)]
    return Example(
        attrs,
        operands,
        always_stored=stored,
        discrete=frozenset([1]),
        smooth=False,
        resizable=not attrs,
        expected=expected,
    )


def quantized(
    x: Array,
    scale: Array,
    zero_point: Array | None,
    target: DType,
    attrs: dict[str, Any],
) -> Array:
    """The result of the specification, which divides in half precision."""
    divisor = unspread(scale, x.shape, attrs).astype(np.float16)
    with np.errstate(over="ignore"):  # infinity is the quotient of halves, then
        quotient = x.astype(np.float16) / divisor
    if dtypes.is_float(target):
        if target in FLOAT8 and attrs.get("saturate", 1):
            largest = {"4m3fn": 448, "3fnuz": 240}.get(target.name[-5:], 57344)
            quotient = np.clip(quotient, -largest, largest)
        return quotient.astype(target)
    total = np.rint(quotient.astype(np.float64))
    if zero_point is not None:
        total = total + wide(unspread(zero_point, x.shape, attrs))
    return np.clip(total, *limits(target)).astype(target)


@case("DequantizeLinear")
def dequantize_linear(draw: Draw, version: int) -> Example:
    source = quantized_dtype(draw, version)
    shape = extents(draw)
    size, attrs = granularity(draw, version, shape)
    half = version >= 19 and draw(st.booleans())
    scale = scales(draw, size, np.float16 if half else np.float32)
    operands = [numbers_of(draw, shape, source), scale]
    if not dtypes.is_float(source) and draw(st.booleans()):
        operands.append(numbers_of(draw, size, source))
    plain = source in (*OCTETS, dtypes.uint16, dtypes.int16)
    # onnxruntime takes no NumPy array of other dtypes.
    exotic = frozenset() if plain else frozenset([0, 2][: len(operands) - 1])
    return Example(
        attrs,
        operands,
        stored=None if plain else exotic | {1},
        always_stored=exotic,
        discrete=frozenset([0] if dtypes.is_float(source) else []),
        resizable=not attrs,
    )


@case("DynamicQuantizeLinear")
def dynamic_quantize_linear(draw: Draw, version: int) -> Example:
    shift = draw(st.sampled_from([-4.0, 0.0, 0.5, 4.0]))
    x = floats(draw, extents(draw)) + np.float32(shift)
    return Example({}, [x], outputs=3)


def zero_point(draw: Draw, dtype: DType, shape: tuple[int, ...] = ()) -> Array:
    """Zero points near the middle of a range."""
    middle = 0 if dtype == dtypes.int8 else 128
    return integers(draw, shape, middle - 20, middle + 20, dtype)


def octets(draw: Draw, shape: tuple[int, ...], dtype: DType) -> Array:
    """Numbers of 8 bits that some processors multiply without an overflow."""
    low = -63 if dtype == dtypes.int8 else 65
    return integers(draw, shape, low, low + 126, dtype)


def matrices(draw: Draw, second: DType) -> tuple[Array, Array]:
    """A stack of uint8 matrices, and the operands to multiply it with."""
    *batch, rows, inner, columns = extents(draw, 4, 5)
    several = batch if draw(st.booleans()) else []
    x = octets(draw, (*batch, rows, inner), dtypes.uint8)
    return x, octets(draw, (*several, inner, columns), second)


@case("MatMulInteger")
def matmul_integer(draw: Draw, version: int) -> Example:
    second = draw(st.sampled_from(OCTETS))
    x, y = matrices(draw, second)
    operands: list[Array | None] = [x, y]
    if draw(st.booleans()):
        operands.append(zero_point(draw, dtypes.uint8))
        each = (y.shape[-1],) if y.ndim == 2 and draw(st.booleans()) else ()
        if draw(st.booleans()):
            operands.append(zero_point(draw, second, each))
    return Example({}, operands, resizable=False)


@case("QLinearMatMul")
def qlinear_matmul(draw: Draw, version: int) -> Example:
    second = draw(st.sampled_from(OCTETS))
    x, y = matrices(draw, second)
    each = (y.shape[-1],) if y.ndim == 2 and draw(st.booleans()) else ()
    operands = [
        *(x, scales(draw, ()), zero_point(draw, dtypes.uint8)),
        *(y, scales(draw, each), zero_point(draw, second, each)),
        *(scales(draw, (), factor=3.0), zero_point(draw, dtypes.uint8)),
    ]
    return Example({}, operands, resizable=False)


def convolution(draw: Draw, second: DType) -> tuple[Array, Array, dict[str, Any]]:
    """An image of uint8, a weight, and attributes."""
    group = draw(st.integers(1, 2))
    within, without = draw(st.integers(1, 3)), group * draw(st.integers(1, 3))
    kernel = (draw(st.integers(1, 3)), draw(st.integers(1, 2)))
    size = (draw(st.integers(5, 8)), draw(st.integers(5, 8)))
    x = octets(draw, (2, group * within, *size), dtypes.uint8)
    weight = octets(draw, (without, within, *kernel), second)
    attrs: dict[str, Any] = {"group": group}
    if draw(st.booleans()):
        attrs |= {"pads": (0, 1, 2, 1), "strides": (2, 1), "dilations": (1, 2)}
    elif draw(st.booleans()):
        attrs |= {"auto_pad": "SAME_LOWER", "kernel_shape": kernel}
    return x, weight, attrs


@case("ConvInteger")
def conv_integer(draw: Draw, version: int) -> Example:
    second = dtypes.uint8
    x, weight, attrs = convolution(draw, second)
    operands: list[Array | None] = [x, weight]
    if draw(st.booleans()):
        operands.append(zero_point(draw, dtypes.uint8))
        if draw(st.booleans()):
            operands.append(zero_point(draw, second))
    return Example(attrs, operands, resizable=False)


@case("DynamicQuantizeConv", domain="burn")
def dynamic_quantize_conv(draw: Draw, version: int) -> Example:
    second = draw(st.sampled_from(OCTETS))
    x, weight, attrs = convolution(draw, second)
    operands: list[Array | None] = [floats(draw, x.shape), weight, scales(draw, ())]
    if draw(st.booleans()):
        operands.append(zero_point(draw, second))
        if draw(st.booleans()):
            operands.append(floats(draw, weight.shape[:1]))
    return Example(attrs, operands, smooth=False, resizable=False, atol=1e-4)


@case("QLinearConv")
def qlinear_conv(draw: Draw, version: int) -> Example:
    second = draw(st.sampled_from(OCTETS))
    x, weight, attrs = convolution(draw, second)
    each = weight.shape[:1] if draw(st.booleans()) else ()
    # Zero points that differ from channel to channel are not to be had elsewhere.
    shift = np.full(each, zero_point(draw, second), second)
    operands = [
        *(x, scales(draw, ()), zero_point(draw, dtypes.uint8)),
        *(weight, scales(draw, each), shift),
        *(scales(draw, (), factor=3.0), zero_point(draw, dtypes.uint8)),
    ]
    if draw(st.booleans()):
        operands.append(integers(draw, weight.shape[:1], -3000, 3000, np.int32))
    return Example(attrs, operands, resizable=False)
