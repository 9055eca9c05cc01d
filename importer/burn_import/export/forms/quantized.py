"""Quantization and quantized operators."""

from typing import Any

import numpy as np

from burn import dtypes
from burn.dtypes import DType
from burn_import.export.registry import form
from burn_import.export.writer import GraphWriter, Operand, element_type


@form("quantize")
def quantize(
    w: GraphWriter,
    x: Operand,
    scale: Any,
    zero_point: Any = None,
    *,
    dtype: DType = dtypes.uint8,
    axis: int = 1,
    block_size: int = 0,
    saturate: bool = True,
    precision: DType = dtypes.float32,
) -> Operand:
    divisor = w.scalar(scale, x.dtype)
    attrs = _attributes(w, divisor, axis, block_size)
    if dtype in dtypes.FLOAT8:
        w.require(19, "QuantizeLinear of float8")
        attrs["saturate"] = int(saturate)
    zero = _zero_point(w, zero_point, divisor, dtype)
    return w.node("QuantizeLinear", x, divisor, zero, dtype=dtype, **attrs)


@form("dequantize")
def dequantize(
    w: GraphWriter,
    x: Operand,
    scale: Any,
    zero_point: Any = None,
    *,
    dtype: DType = dtypes.float32,
    axis: int = 1,
    block_size: int = 0,
) -> Operand:
    factor = w.scalar(scale, dtype)
    attrs = _attributes(w, factor, axis, block_size)
    zero = None if zero_point is None else w.scalar(zero_point, x.dtype)
    return w.node("DequantizeLinear", x, factor, zero, dtype=dtype, **attrs)


def _attributes(
    w: GraphWriter, scale: Operand, axis: int, block_size: int
) -> dict[str, Any]:
    if block_size:
        w.require(21, "blocks of scales")
        return {"axis": axis, "block_size": block_size}
    return {"axis": axis} if scale.shape not in ((), (1,)) else {}


def _zero_point(
    w: GraphWriter, zero_point: Any, scale: Operand, dtype: DType
) -> Operand | None:
    """Return the zero point, whose dtype selects that of the result."""
    if zero_point is not None:
        return w.scalar(zero_point, dtype)
    if dtype == dtypes.uint8:
        return None
    if all(isinstance(n, int) for n in scale.shape):
        return w.constant(np.zeros(scale.shape, dtype))
    zero = w.scalar(0, dtype)
    shape = w.node("Shape", scale, dtype=dtypes.int64)
    return w.node("Expand", zero, shape)


#: Integer types of QuantizeLinear with the opset that added them. Before these opsets,
#: and for other bounds than those of a type, one of 8 bits is clipped.
_INTEGERS: tuple[tuple[DType, int], ...] = (
    (dtypes.int8, 13),
    (dtypes.uint8, 13),
    *((dtypes.int4, 21), (dtypes.uint4, 21), (dtypes.int16, 21), (dtypes.uint16, 21)),
)


@form("fake_quantize")
def fake_quantize(
    w: GraphWriter, x: Operand, scale: Any, zero_point: Any, *, low: int, high: int
) -> Operand:
    step, dtype = w.scalar(scale, x.dtype), _integer_type(w, low, high)
    zero = w.scalar(zero_point, getattr(zero_point, "dtype", x.dtype))
    axis = _quantized_axis(x, step, zero)
    if dtype is None or axis is None or not _fits(zero, dtype):
        return _rounded(w, x, step, w.cast(zero, x.dtype), low, high)
    count = 0 if axis < 0 else max(_extents(step) + _extents(zero))
    steps, zeros = _vector(w, step, count), _vector(w, w.cast(zero, dtype), count)
    if zeros.constant is not None:
        # Not shared: onnxruntime replaces zero points of int8 once for each weight, and
        # fails at the second of one name.
        zeros = w.constant(zeros.constant, "zero_point")
    attrs = {} if axis < 0 else {"axis": axis}
    quantized = w.node("QuantizeLinear", x, steps, zeros, dtype=dtype, **attrs)
    limits = dtypes.integer_limits(dtype)
    if (low, high) != (limits.min, limits.max):
        quantized = w.node(
            "Clip", quantized, w.scalar(low, dtype), w.scalar(high, dtype)
        )
    return w.node("DequantizeLinear", quantized, steps, zeros, dtype=x.dtype, **attrs)


def _rounded(
    w: GraphWriter, x: Operand, step: Operand, zero: Operand, low: int, high: int
) -> Operand:
    """Return the values of quantized integers, computed in the dtype of ``x``."""
    number = w.node("Add", w.node("Round", w.node("Div", x, step)), zero)
    bounds = w.scalar(low, x.dtype), w.scalar(high, x.dtype)
    clipped = w.node("Clip", number, *bounds)
    return w.node("Mul", w.node("Sub", clipped, zero), step)


def _integer_type(w: GraphWriter, low: int, high: int) -> DType | None:
    """Return the type of exactly these bounds, or one of 8 bits that has them."""
    known = [dtype for dtype, opset in _INTEGERS if opset <= w.opset]
    limits = [(dtype, dtypes.integer_limits(dtype)) for dtype in known]
    exact = [dtype for dtype, of in limits if (of.min, of.max) == (low, high)]
    wider = [dtype for dtype, of in limits[:2] if of.min <= low and high <= of.max]
    return next(iter(exact + wider), None)


def _quantized_axis(x: Operand, step: Operand, zero: Operand) -> int | None:
    """Return the axis of ``x`` along which scales differ, -1 if there is one for all.

    None is for scales that QuantizeLinear does not take.
    """
    shapes = (_extents(step), _extents(zero))
    if x.dtype != dtypes.float32 or shapes != (step.shape, zero.shape):
        return None
    axes = {
        axis - len(shape)
        for shape in shapes
        for axis, extent in enumerate(shape)
        if extent != 1
    }
    if len(axes) > 1 or max(map(len, shapes)) > x.rank:
        return None
    return x.rank + axes.pop() if axes else -1


def _extents(value: Operand) -> tuple[int, ...]:
    """Return the extents that are numbers."""
    return tuple(extent for extent in value.shape if isinstance(extent, int))


def _fits(zero: Operand, dtype: DType) -> bool:
    """Return whether a zero point is of integers of ``dtype``.

    Those that are computed fit if they are integers.
    """
    if zero.constant is None:
        return dtypes.is_integer(zero.dtype)
    limits, numbers = dtypes.integer_limits(dtype), zero.constant
    whole = (numbers == np.rint(numbers)).all()
    return bool(
        whole and (numbers >= limits.min).all() and (numbers <= limits.max).all()
    )


def _vector(w: GraphWriter, value: Operand, count: int) -> Operand:
    """Return a scale or zero point as a vector of ``count`` elements; 0 is no axis."""
    if value.constant is not None:
        shape = (count,) if count else ()
        array = np.broadcast_to(value.constant.reshape(-1 if count else ()), shape)
        return Operand("", shape, value.dtype, array)
    if not value.shape and not count:
        return value
    if not count:
        return w.node("Squeeze", value)
    vector = w.node("Reshape", value, [-1])
    return vector if count in value.shape else w.node("Expand", vector, [count])


@form("bitcast")
def bitcast(w: GraphWriter, x: Operand, *, dtype: DType) -> Operand:
    w.require(26, "BitCast")
    return w.node("BitCast", x, dtype=dtype, to=element_type(dtype))
