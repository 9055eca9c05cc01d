"""Quantization and quantized operators."""

from __future__ import annotations

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
    w: GraphWriter, given: Any, scale: Operand, dtype: DType
) -> Operand | None:
    """Return the zero point, whose dtype selects that of the result."""
    if given is not None:
        return w.scalar(given, dtype)
    if dtype == dtypes.uint8:
        return None
    if all(isinstance(n, int) for n in scale.shape):
        return w.constant(np.zeros(scale.shape, dtype))
    zero = w.scalar(0, dtype)
    shape = w.node("Shape", scale, dtype=dtypes.int64)
    return w.node("Expand", zero, shape)


@form("fake_quantize")
def fake_quantize(
    w: GraphWriter, x: Operand, scale: Any, zero_point: Any, *, low: int, high: int
) -> Operand:
    step, zero = w.scalar(scale, x.dtype), w.scalar(zero_point, x.dtype)
    number = w.node("Add", w.node("Round", w.node("Div", x, step)), zero)
    bounds = w.scalar(low, x.dtype), w.scalar(high, x.dtype)
    kept = w.node("Clip", number, *bounds)
    return w.node("Mul", w.node("Sub", kept, zero), step)


@form("bitcast")
def bitcast(w: GraphWriter, x: Operand, *, dtype: DType) -> Operand:
    w.require(26, "BitCast")
    return w.node("BitCast", x, dtype=dtype, to=element_type(dtype))
