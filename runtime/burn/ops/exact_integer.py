"""Exact integer products, and layers with quantized operands.

Integers are multiplied as float32 or float64, whichever represents every sum exactly,
because BLAS is fast for these; the result is an integer. On the host the largest
elements decide; elsewhere the dtypes do, because reading elements waits for the device.
"""

from typing import Any

import numpy as np

from burn import dtypes
from burn.dtypes import DType
from burn.ops.conv import conv
from burn.ops.quantize import Shift, saturated
from burn.ops.support import Array, as_array, namespace, product
from burn.ops.window import Extents, Padding
from burn.primitive import primitive

#: The largest integer up to which float32 is exact.
_EXACT = 2.0**24
#: The largest product of two differences of 8-bit integers.
_BYTES = 255.0**2


@primitive(removable=True, no_gradient="integers have no gradient")
def integer_matmul(
    x: Array, y: Array, x_zero_point: Shift = None, y_zero_point: Shift = None
) -> Array:
    """``(x - x_zero_point) @ (y - y_zero_point)`` of integers, in int32.

    ``x`` is [..., n, k] and ``y`` [..., k, m], of 8 or 16 bits. A zero point is one
    number, or one for each row of ``x`` ([n] or [..., n, 1]) and each column of ``y``
    ([m] or [..., 1, m]). Sums beyond 32 bits wrap.
    """
    operands = _shifted(x, _rows(x_zero_point)), _shifted(y, y_zero_point)
    return _wrapped(_product(*operands, _bound(x, y)))


@primitive(removable=True, no_gradient="integers have no gradient")
def integer_conv(
    x: Array,
    weight: Array,
    x_zero_point: Shift = None,
    weight_zero_point: Shift = None,
    *,
    stride: Extents = 1,
    padding: Padding = 0,
    dilation: Extents = 1,
    groups: int = 1,
) -> Array:
    """Return the int32 convolution of ``x`` and ``weight``, less their zero points.

    Operands and arguments are those of :func:`conv`, of 8-bit integers;
    ``weight_zero_point`` is one number or one per output channel. Padding has the value
    ``x_zero_point``.
    """
    steps = {"stride": stride, "padding": padding, "dilation": dilation}
    centered, taps = _shifted(x, x_zero_point), _taps(weight, weight_zero_point)
    options = {**steps, "groups": groups}
    return _wrapped(_correlation(centered, taps, options, _bound(x, weight)))


@primitive(no_gradient="rounding is piecewise constant")
def quantized_matmul(
    x: Array,
    x_scale: Array,
    x_zero_point: Shift,
    y: Array,
    y_scale: Array,
    y_zero_point: Shift,
    scale: Array,
    zero_point: Shift,
    *,
    dtype: DType = dtypes.uint8,
) -> Array:
    """Return the product of two quantized matrices, requantized to ``dtype``.

    ``x`` is [..., n, k] and ``y`` [..., k, m]; their scales and zero points are one
    number, or one for each row of ``x`` and each column of ``y``. The result has
    ``scale`` and ``zero_point``.
    """
    left = _shifted(x, _rows(x_zero_point))
    total = _product(left, _shifted(y, y_zero_point), _bound(x, y))
    factor = _float(_rows(x_scale)) * _float(y_scale) / _float(scale)
    return _requantized(total, factor, zero_point, dtype)


@primitive(no_gradient="rounding is piecewise constant")
def quantized_conv(
    x: Array,
    x_scale: Array,
    x_zero_point: Shift,
    weight: Array,
    weight_scale: Array,
    weight_zero_point: Shift,
    scale: Array,
    zero_point: Shift,
    bias: Array | None = None,
    *,
    stride: Extents = 1,
    padding: Padding = 0,
    dilation: Extents = 1,
    groups: int = 1,
    dtype: DType = dtypes.uint8,
) -> Array:
    """Return the convolution of two quantized operands, requantized to ``dtype``.

    Operands and arguments are those of :func:`conv`. Scale and zero point of ``weight``
    are one number or one per output channel; ``bias`` (int32) has the scale ``x_scale *
    weight_scale``.
    """
    steps = {"stride": stride, "padding": padding, "dilation": dilation}
    centered, taps = _shifted(x, x_zero_point), _taps(weight, weight_zero_point)
    options = {**steps, "groups": groups}
    total = _correlation(centered, taps, options, _bound(x, weight))
    if bias is not None:
        total = total.astype(np.float64)
        total += _leading(as_array(x, bias), x.ndim - 1)
    each = _leading(as_array(x, _float(weight_scale)), x.ndim - 1)
    factor = _scalar(x_scale) * each / _scalar(scale)
    return _requantized(total, factor, zero_point, dtype)


def _float(x: Array) -> Array:
    """Return an array or a list of numbers as float32, a number as a scalar."""
    if isinstance(x, int | float):
        return np.float32(x)  # CuPy computes with these, not with arrays of NumPy
    x = x if hasattr(x, "astype") else np.asarray(x)
    return x.astype(np.float32)


def _scalar(x: Array) -> Array:
    """Return one number as a float32 of rank 0."""
    x = _float(x)
    return x if isinstance(x, np.generic) else x.reshape(())


def _shifted(x: Array, zero_point: Array | None) -> Array:
    """Return ``x - zero_point`` in float32, which is exact for 16-bit integers."""
    if zero_point is None:
        return _float(x)
    zero_point = _float(zero_point)
    if isinstance(zero_point, np.ndarray):
        zero_point = as_array(x, zero_point)
    return _float(x) - (_scalar(zero_point) if zero_point.size == 1 else zero_point)


def _rows(values: Array | None) -> Array | None:
    """Return a vector with one number per row as a column; others unchanged."""
    if values is None or np.ndim(values) != 1:
        return values
    return _float(values).reshape(-1, 1)


def _taps(weight: Array, zero_point: Array | None) -> Array:
    if zero_point is not None:
        zero_point = _leading(as_array(weight, _float(zero_point)), weight.ndim)
    return _shifted(weight, zero_point)


def _leading(values: Array, rank: int) -> Array:
    """Return a number or vector along the first of ``rank`` axes."""
    return values.reshape(-1, *(1,) * (rank - 1))


def _bound(x: Array, y: Array) -> float:
    """Return an upper bound of products of elements minus zero points."""
    return _span(x.dtype) * _span(y.dtype)


def _span(dtype: DType) -> float:
    """Return the largest difference of two numbers of a quantized dtype."""
    if dtypes.is_integer(dtype):
        limits = dtypes.integer_limits(dtype)
        return float(limits.max) - float(limits.min)
    return 2 * dtypes.largest(dtype)


def _exact_dtype(x: Array, y: Array, terms: int, bound: float) -> Any:
    """Return the float dtype that represents all sums of ``terms`` products exactly."""
    if not x.size or not y.size:
        return np.float32
    if namespace(x) is np:
        bound = float(abs(x).max()) * float(abs(y).max())
    elif bound > _BYTES:  # TensorFloat-32 has not enough bits
        return np.float64
    return np.float32 if bound * terms <= _EXACT else np.float64


def _product(x: Array, y: Array, bound: float) -> Array:
    """Return the exact matrix product of integers."""
    dtype = _exact_dtype(x, y, x.shape[-1], bound)
    x, y = x.astype(dtype, copy=False), y.astype(dtype, copy=False)
    if x.ndim > 2 and y.ndim == 2 and x.size:
        rows = x.reshape(-1, x.shape[-1])
        return product(rows, y).reshape(*x.shape[:-1], y.shape[1])
    return product(x, y)


def _correlation(
    x: Array, weight: Array, options: dict[str, Any], bound: float
) -> Array:
    """Return the exact convolution of integers."""
    terms = int(np.prod(weight.shape[1:]))
    dtype = _exact_dtype(x, weight, terms, bound)
    x, weight = x.astype(dtype, copy=False), weight.astype(dtype, copy=False)
    return conv.kernel(x, weight, **options)


def _wrapped(total: Array) -> Array:
    """Return integers as int32, wrapped on overflow."""
    if total.dtype == np.float32:
        return total.astype(np.int32)
    return total.astype(np.int64).astype(np.int32)


def _requantized(
    total: Array, factor: Array, zero_point: Array | None, dtype: DType
) -> Array:
    """Return ``total * factor`` rounded, plus ``zero_point``, as ``dtype``."""
    value = _float(total) * factor
    if dtypes.is_integer(dtype):
        value = namespace(value).rint(value)
    if zero_point is not None:
        value = value + _scalar(zero_point)
    return saturated(value, dtype)
