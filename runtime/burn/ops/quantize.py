"""Quantization: low-bit numbers that represent ``(x - zero_point) * scale``.

A scale is one number, a vector along ``axis``, or has the rank of ``x`` and one number
for every ``block_size`` elements along ``axis``. A zero point has the shape of the
scale.
"""

from typing import Any, TypeAlias

import numpy as np

from burn import dtypes
from burn.dtypes import DType
from burn.ops.broadcast import like
from burn.ops.casting import cast
from burn.ops.composition import through
from burn.ops.creation import ones_like
from burn.ops.elementwise import maximum, minimum
from burn.ops.padding import pad
from burn.ops.reduction import max, min, sum
from burn.ops.shape import reshape
from burn.ops.support import Array, namespace
from burn.primitive import primitive

Shift: TypeAlias = Any  # a zero point: None, an array, or integers


@primitive(removable=True, no_gradient="rounding is piecewise constant", numpy_time=2.0)
def quantize(
    x: Array,
    scale: Array,
    zero_point: Shift = None,
    *,
    dtype: DType = dtypes.uint8,
    axis: int = 1,
    block_size: int = 0,
    saturate: bool = True,
    precision: DType = dtypes.float32,
) -> Array:
    """Return ``x / scale + zero_point`` as ``dtype``.

    The quotient, in ``precision``, is rounded to the nearest integer, halves to even,
    and the sum is clipped to the range of the result; a NaN becomes its minimum. A
    float8 is rounded once, and clipped only with ``saturate``.
    """
    divisor = spread(scale, x, axis, block_size, precision)
    quotient = _widened(x.astype(precision) / divisor)
    if dtypes.is_integer(dtype):
        quotient = namespace(x).rint(quotient)
    if zero_point is not None:
        quotient = quotient + spread(zero_point, x, axis, block_size, quotient.dtype)
    return saturated(quotient, dtype, saturate)


def _widened(x: Array) -> Array:
    """Return ``x`` in a dtype that represents 16-bit integers exactly."""
    return x if x.dtype.itemsize > 2 else x.astype(np.float32)


def saturated(x: Array, dtype: DType, saturate: bool = True) -> Array:
    """Return ``x`` as ``dtype``, clipped to its range.

    Without ``saturate``, values out of the range of a float8 become inf or NaN.
    """
    xp = namespace(x)
    if dtypes.is_integer(dtype):
        limits = dtypes.integer_limits(dtype)
        return xp.minimum(xp.fmax(x, limits.min), limits.max).astype(dtype)
    if saturate and dtype in dtypes.FLOAT8:
        largest = dtypes.largest(dtype)
        x = xp.clip(x, -largest, largest)
    return x.astype(dtype)


def spread(values: Array, x: Array, axis: int, block_size: int, dtype: Any) -> Array:
    """Return ``values`` (scales, zero points) as ``dtype``, to broadcast to ``x``.

    Raises:
        ValueError: their number differs from the extents or blocks of ``x``.
    """
    values = namespace(x).asarray(values).astype(dtype)
    if values.size == 1:
        return values.reshape(())
    axis = axis % x.ndim if x.ndim > 1 else 0
    if not _fits(values.shape, x.shape, axis, block_size):
        raise ValueError(
            f"expected one scale or zero point, or those of axis {axis} of "
            f"{list(x.shape)}, got {list(values.shape)}"
        )
    if values.ndim == 1 and not block_size:
        return values.reshape(-1, *(1,) * (x.ndim - axis - 1))
    extent = x.shape[axis]
    size = block_size or -(-extent // values.shape[axis])
    if size == 1:
        return values
    each = namespace(x).repeat(values, size, axis)
    return each[(slice(None),) * axis + (slice(extent),)]


def _fits(
    values: tuple[int, ...], shape: tuple[int, ...], axis: int, block_size: int
) -> bool:
    """Return whether scales of shape ``values`` apply to ``shape`` along ``axis``."""
    if len(values) == 1 and not block_size:
        return bool(shape) and values[0] == shape[axis]
    if len(values) != len(shape):
        return False
    for dimension, (count, extent) in enumerate(zip(values, shape, strict=True)):
        if dimension != axis:
            fits = count in (1, extent)
        elif block_size:
            fits = count == -(-extent // block_size)
        else:
            fits = count == 1 or count <= extent
        if not fits:
            return False
    return True


@primitive(removable=True, memory_bound=True)
def dequantize(
    x: Array,
    scale: Array,
    zero_point: Shift = None,
    *,
    dtype: DType = dtypes.float32,
    axis: int = 1,
    block_size: int = 0,
) -> Array:
    """Return ``(x - zero_point) * scale`` as ``dtype``.

    Half types are computed in float32 and rounded once.
    """
    work = np.float32 if dtype in dtypes.HALVES else dtype
    if zero_point is None:
        y = x.astype(work)
    elif x.dtype.itemsize > 2 and dtypes.is_integer(x.dtype):
        y = (x - spread(zero_point, x, axis, block_size, np.int64)).astype(work)
    else:
        y = x.astype(work) - spread(zero_point, x, axis, block_size, work)
    y = y * spread(scale, x, axis, block_size, work)
    return y.astype(dtype, copy=False)


@dequantize.vjp
def _(
    grad: Any,
    out: Any,
    x: Any,
    scale: Any,
    zero_point: Any = None,
    *,
    dtype: DType = dtypes.float32,
    axis: int = 1,
    block_size: int = 0,
) -> Any:
    steps: Any = {"dtype": dtype, "axis": axis, "block_size": block_size}

    def scaled() -> Any:
        return dequantize(grad, scale, **steps)

    def of_scale() -> Any:
        one = ones_like(cast(scale, dtype=dtype))
        terms = grad * dequantize(x, one, zero_point, **steps)
        return _block_sums(terms, scale, axis, block_size)

    def of_zero_point() -> Any:
        return -_block_sums(scaled(), zero_point, axis, block_size)

    return (
        (lambda: like(scaled(), x)) if _varies(x) else None,
        of_scale if _varies(scale) else None,
        of_zero_point if _varies(zero_point) else None,
    )


def _varies(x: Any) -> bool:
    """Return whether there is a gradient with respect to ``x``."""
    number = x is None or isinstance(x, int | float | list)
    return not number and dtypes.is_float(x.dtype)


def _block_sums(terms: Any, values: Any, axis: int, block_size: int) -> Any:
    """Return ``terms`` summed to the shape of ``values``, from which they broadcast."""
    extents, shape = terms.shape, values.shape
    if values.size == 1:
        return like(reshape(sum(terms), shape), values)
    rank = len(extents)
    axis = axis % rank if rank > 1 else 0
    if values.ndim == 1 and not block_size:
        others = tuple(other for other in range(rank) if other != axis)
        return like(sum(terms, others), values)
    count = shape[axis]
    size = block_size or -(-extents[axis] // count)
    lacking = count * size - extents[axis]
    if lacking:
        pads = [0] * (2 * rank)
        pads[rank + axis] = lacking
        terms = pad(terms, tuple(pads))
    blocks = reshape(terms, (*shape[: axis + 1], size, *shape[axis + 1 :]))
    return like(sum(blocks, axis + 1), values)


@primitive(outputs=2, removable=True, numpy_time=0.5)
def quantization_range(x: Array) -> tuple[Array, Array]:
    """Return the scale and zero point (uint8) for the range of ``x``.

    The range includes zero; if it is zero only, the scale is 1.
    """
    xp = namespace(x)
    zero = xp.zeros(1, x.dtype)
    values = xp.concatenate([x.reshape(-1), zero])
    low, high = values.min(), values.max()
    scale = ((high - low) / x.dtype.type(255)).astype(x.dtype)
    scale = xp.where(high == low, xp.ones_like(scale), scale)
    zero_point = xp.rint(xp.clip(-low / scale, 0, 255)).astype(np.uint8)
    return xp.asarray(scale), xp.asarray(zero_point)


@quantization_range.vjp
def _(grad: Any, out: Any, x: Any) -> Any:
    return lambda: through(_scale_of, (grad[0],), x)[0]


def _scale_of(x: Any) -> Any:
    return (maximum(max(x), 0.0) - minimum(min(x), 0.0)) / 255.0


@primitive(removable=True)
def cast_e8m0(x: Array, *, round_mode: str = "up", saturate: bool = True) -> Array:
    """Return the power of two near the magnitude of ``x``, as float8_e8m0fnu.

    ``round_mode`` is ``"up"``, ``"down"`` or ``"nearest"`` (halves up). With
    ``saturate``, values out of range, zero and infinity become the least or the
    greatest number, else NaN.
    """
    xp = namespace(x)
    mantissa, exponent = xp.frexp(xp.abs(x.astype(np.float64)))
    # A mantissa is in [0.5, 1): the smaller power of two is one exponent less.
    above = {"up": mantissa > 0.5, "nearest": mantissa >= 0.75}.get(round_mode, False)
    octet = exponent - 1 + above + 127
    octet = xp.where(xp.isinf(mantissa), 255, xp.where(mantissa == 0, -1, octet))
    if saturate:
        octet = xp.clip(octet, 0, 254)
    inside = (octet >= 0) & (octet < 255) & ~xp.isnan(mantissa)
    return xp.where(inside, octet, 255).astype(np.uint8).view(dtypes.float8_e8m0fnu)


@cast_e8m0.vjp
def _(grad: Any, out: Any, x: Any, **_: Any) -> Any:
    return (lambda: cast(grad, dtype=x.dtype)) if dtypes.is_float(x.dtype) else None


@primitive(removable=True, memory_bound=True)
def fake_quantize(
    x: Array, scale: Array, zero_point: Array, *, low: int, high: int
) -> Array:
    """Return ``x`` rounded to values of quantized integers from ``low`` to ``high``.

    ``scale`` and ``zero_point`` broadcast to ``x``. The gradient is passed through
    where the unclipped integer is in range, and is 0 elsewhere.
    """
    xp = namespace(x)
    whole = xp.clip(_levels(x, scale, zero_point), low, high)
    return ((whole - zero_point) * scale).astype(x.dtype, copy=False)


def _levels(x: Array, scale: Array, zero_point: Array) -> Array:
    """Return the quantized integers for ``x``, unclipped."""
    return namespace(x).rint(x * (1 / scale)) + zero_point


@fake_quantize.vjp
def _(
    grad: Any, out: Any, x: Any, scale: Any, zero_point: Any, *, low: Any, high: Any
) -> Any:
    return (
        lambda: grad * quantizes(x, scale, zero_point, low=low, high=high),
        None,
        None,
    )


@primitive(removable=True, no_gradient="comparisons are piecewise constant")
def quantizes(
    x: Array, scale: Array, zero_point: Array, *, low: int, high: int
) -> Array:
    """Return 1 where the quantized integer for ``x`` is in range, else 0."""
    whole = _levels(x, scale, zero_point)
    return ((whole >= low) & (whole <= high)).astype(x.dtype)
