"""Layers with 8-bit integer operands, which plans use in place of float layers.

An integer operand is a tuple ``(numbers, scale, zero_point)``, as for
:func:`burn.ops.dequantize`; ``zero_point`` may be None. The result is the layer of the
dequantized operands, with the epilogue ``after``; with ``result``, which is ``(scale,
zero_point)``, it is quantized to ``dtype``. If ``after`` has ``("limits",)`` it is
clipped to the range of ``limits``. An engine accumulates integer products, so its
rounding errors are smaller.
"""

from typing import Any, TypeAlias

import numpy as np

from burn.dtypes import DType, float32, int8, int32, integer_limits, uint8
from burn.ops.fused import After, conv_then, linear_then
from burn.ops.quantize import dequantize, quantize
from burn.ops.support import Array, namespace
from burn.primitive import PLAN_ONLY, primitive

#: Numbers, their scale and their zero point.
Integers: TypeAlias = tuple[Array, Array, Array | None]
#: A scale and a zero point.
Scaling: TypeAlias = tuple[Array, Array | None]
#: A scale, a zero point and a dtype: results are clipped to its dequantized range.
Limits: TypeAlias = tuple[Array, Array | None, DType]


@primitive(removable=True, no_gradient=PLAN_ONLY)
def conv_of_integers(
    x: Integers,
    weight: Integers,
    bias: Array | None = None,
    residual: Array | Integers | None = None,
    result: Scaling | None = None,
    limits: Limits | None = None,
    *,
    after: After = (),
    dtype: DType = float32,
    **static: Any,
) -> Array:
    """Return :func:`burn.ops.conv` with weights [O, C/groups, *K] and output scales."""
    operands = (_wide(x), _wide(weight), bias, _wide(residual))
    after = limited(after, limits)
    out = conv_then.kernel(*operands, after=after, **static)
    return _narrow(out, result, dtype)


@primitive(removable=True, no_gradient=PLAN_ONLY)
def linear_of_integers(
    x: Integers,
    weight: Integers,
    bias: Array | None = None,
    residual: Array | Integers | None = None,
    result: Scaling | None = None,
    limits: Limits | None = None,
    *,
    after: After = (),
    dtype: DType = float32,
) -> Array:
    """Return :func:`burn.ops.linear` with weights [out, in] and output scales."""
    operands = (_wide(x), _wide(weight), bias, _wide(residual))
    out = linear_then.kernel(*operands, after=limited(after, limits))
    return _narrow(out, result, dtype)


@primitive(removable=True, no_gradient=PLAN_ONLY)
def to_integers(
    x: Array, scale: Array, zero_point: Array | None = None, *, dtype: DType
) -> Array:
    """Return :func:`burn.ops.quantize` by one scale, or by a factor: its inverse."""
    return quantize.kernel(x, scale, zero_point, dtype=dtype)


@primitive(removable=True, no_gradient=PLAN_ONLY)
def from_integers(x: Array, scale: Array, zero_point: Array | None = None) -> Array:
    """Return :func:`burn.ops.dequantize` by one scale."""
    return dequantize.kernel(x, scale, zero_point)


@primitive(removable=True, no_gradient=PLAN_ONLY)
def signed_rows(weight: Array) -> Array:
    """Return weights [in, out] of 8 bits as int8 [out, in]; uint8 less 128."""
    xp = namespace(weight)
    if weight.dtype == uint8:
        weight = (weight ^ np.uint8(128)).view(int8)
    return xp.ascontiguousarray(weight.T)


@primitive(removable=True, no_gradient=PLAN_ONLY)
def signed_zero_point(zero_point: Array | None, weight: Array) -> Array:
    """Return the zero point of :func:`signed_rows` of ``weight``, in int32."""
    offset = 128 if weight.dtype == uint8 else 0
    value = 0 if zero_point is None else zero_point.reshape(()).astype(int32)
    return namespace(weight).asarray(value - offset, int32)


@primitive(removable=True, no_gradient=PLAN_ONLY)
def scale_of_weights(weight: Array) -> Array:
    """Return the scales [outputs] by which rows of ``weight`` fill -127 to 127."""
    largest = np.abs(weight.reshape(len(weight), -1)).max(axis=1, initial=0)
    return np.where(largest > 0, largest / 127, 1).astype(weight.dtype)


def limited(after: After, limits: Limits | None) -> After:
    """Return ``after`` with numeric values of ``limits``."""
    if limits is None:
        return after
    scale, shift, dtype = limits
    ends, zero = integer_limits(dtype), (
        0 if shift is None else int(np.reshape(shift, ()))
    )
    factor = float(np.reshape(scale, ()))
    clip = ("clip", (ends.min - zero) * factor, (ends.max - zero) * factor)
    return tuple(clip if each == ("limits",) else each for each in after)


def _wide(operand: Any) -> Any:
    if not isinstance(operand, tuple):
        return operand
    return dequantize.kernel(*operand, axis=0)


def _narrow(out: Array, result: Scaling | None, dtype: DType) -> Array:
    return out if result is None else quantize.kernel(out, *result, dtype=dtype)
