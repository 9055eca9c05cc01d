"""Layers with block-quantized, bit-packed weights."""

from typing import Any

import numpy as np

from burn import dtypes
from burn.ops.indexing import getitem, take
from burn.ops.matmul import linear
from burn.ops.quantize import dequantize
from burn.ops.shape import reshape
from burn.ops.support import Array, namespace
from burn.primitive import composite, primitive


@primitive
def unpack_bits(x: Array, *, bits: int) -> Array:
    """Return the ``bits``-wide numbers (2, 4 or 8) in the bytes ``x`` [..., n].

    The result, uint8 [..., n * 8 / bits], has the lowest bits of each byte first.

    Raises:
        ValueError: ``bits`` is another number.
    """
    if bits not in (2, 4, 8):
        raise ValueError(f"expected 2, 4 or 8 bits, got {bits}")
    if bits == 8:
        return x
    places = namespace(x).arange(0, 8, bits, dtype=np.uint8)
    numbers = (x[..., None] >> places) & np.uint8(2**bits - 1)
    return numbers.reshape(*x.shape[:-1], x.shape[-1] * len(places))


unpack_bits.no_gradient("integers have no gradient")


@composite(outputs=1)
def matmul_nbits(
    x: Array,
    weight: Array,
    scale: Array,
    zero_point: Array = None,
    group: Array = None,
    bias: Array = None,
    *,
    bits: int = 4,
) -> Any:
    """Return ``x @ w.mT + bias``, where ``w`` is block-quantized and packed.

    ``weight`` is [out, blocks, octets], uint8, whose numbers of ``bits`` fill a row of
    ``in`` columns and perhaps more; ``scale`` is of [out * blocks] numbers. So is
    ``zero_point``, or it is packed as the weight, each row by itself; without it, it is
    in the middle of the range. ``group`` [in] names the block of each column if they do
    not come in order. The result is [..., out] of the dtype of ``x``.
    """
    rows, blocks, octets = weight.shape
    columns = x.shape[-1]
    values = unpack_bits(reshape(weight, (rows, blocks * octets)), bits=bits)
    values = getitem(values, (slice(None), slice(0, columns)))
    scale = reshape(scale, (rows, blocks))
    shifts = _zero_points(zero_point, (rows, blocks), bits)
    size = octets * 8 // bits
    if group is not None:
        size, scale = 1, take(scale, group, 1)
        shifts = shifts if zero_point is None else take(shifts, group, 1)
    real = dequantize(values, scale, shifts, dtype=x.dtype, block_size=size)
    return linear(x, real) if bias is None else linear(x, real, bias)


def _zero_points(zero_point: Any, shape: tuple[int, int], bits: int) -> Any:
    if zero_point is None:
        return 2 ** (bits - 1)
    if dtypes.is_float(zero_point.dtype):
        return reshape(zero_point, shape)
    numbers = unpack_bits(reshape(zero_point, (shape[0], -1)), bits=bits)
    return getitem(numbers, (slice(None), slice(0, shape[1])))


@composite(outputs=1)
def take_quantized(
    x: Array,
    index: Array,
    scale: Array,
    zero_point: Array = None,
    *,
    axis: int = 0,
    quantized_axis: int = 1,
    block_size: int = 128,
    bits: int | None = None,
) -> Any:
    """Return ``w`` at ``index`` along ``axis``, where ``w`` is block-quantized.

    ``x`` holds quantized numbers, octets full of numbers of ``bits`` (unsigned, packed
    along the last axis) if that is given. ``scale``, whose dtype the result has, and
    ``zero_point``, packed as ``x``, have one number for each ``block_size`` elements
    along ``quantized_axis``. Only what is taken is computed.
    """
    rank = x.ndim
    axis, quantized_axis = axis % rank, quantized_axis % rank
    shifts: Any = zero_point
    if bits is not None:
        x = unpack_bits(x, bits=bits)
        shifts = 2 ** (bits - 1)
        if zero_point is not None:
            shifts = unpack_bits(zero_point, bits=bits)
            shifts = getitem(shifts, (..., slice(0, scale.shape[-1])))
    if axis == quantized_axis:
        steps: Any = {"axis": axis, "block_size": block_size, "dtype": scale.dtype}
        return take(dequantize(x, scale, shifts, **steps), index, axis)
    if zero_point is not None:
        shifts = take(shifts, index, axis)
    block_axis = quantized_axis + (index.ndim - 1 if quantized_axis > axis else 0)
    return dequantize(
        take(x, index, axis),
        take(scale, index, axis),
        shifts,
        axis=block_axis,
        block_size=block_size,
        dtype=scale.dtype,
    )
