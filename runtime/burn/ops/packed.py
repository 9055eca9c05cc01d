"""Layers with block-quantized, bit-packed weights."""

from typing import Any

import numpy as np

from burn import dtypes
from burn.dtypes import DType
from burn.ops.broadcast import expand
from burn.ops.indexing import getitem, take
from burn.ops.matmul import linear
from burn.ops.quantize import dequantize
from burn.ops.shape import reshape, unsqueeze
from burn.ops.support import Array, namespace
from burn.primitive import composite, primitive


@primitive(no_gradient="integers have no gradient")
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


#: The numbers of the 4-bit codes of bitsandbytes.
_BNB4 = {
    "fp4": tuple(
        sign * x
        for sign in (1.0, -1.0)
        for x in (0.0, 1 / 192, 2 / 3, 1.0, 1 / 3, 0.5, 1 / 6, 0.25)
    ),
    "nf4": (
        *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
        *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
        *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634),
        *(0.33791524171829224, 0.44070982933044434, 0.5626170039176941),
        *(0.7229568362236023, 1.0),
    ),
}


@primitive(no_gradient="integers have no gradient")
def unpack_bnb4(x: Array, *, kind: str, dtype: DType) -> Array:
    """Return the numbers whose 4-bit codes are in the bytes ``x`` [n]: [2 n].

    The upper 4 bits of a byte come first. ``kind`` is "fp4" or "nf4".
    """
    space = namespace(x)
    codes = space.stack([x >> np.uint8(4), x & np.uint8(15)], -1).reshape(-1)
    return space.asarray(_BNB4[kind], dtype=dtype)[codes]


@composite(outputs=1)
def dequantize_bnb4(
    x: Array, scale: Array, *, shape: tuple[int, int], block_size: int, kind: str
) -> Any:
    """Return the matrix of ``shape`` that bitsandbytes packed in the bytes ``x``.

    ``kind`` is "fp4" or "nf4"; each ``block_size`` numbers have one of ``scale``.
    """
    count = slice(0, shape[0] * shape[1])
    numbers = getitem(unpack_bnb4(x, kind=kind, dtype=scale.dtype), count)
    steps = expand(unsqueeze(scale, 1), (scale.shape[0], block_size))
    return reshape(numbers * getitem(reshape(steps, (-1,)), count), shape)


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
    along ``quantized_axis``. Only the elements that are taken are dequantized.
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
