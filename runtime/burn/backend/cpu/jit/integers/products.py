"""Products of 8-bit integers as machine code, with instructions for 16 bits.

Differences of numbers and their zero points have 9 bits. An instruction of all x86-64
processors adds the products of two pairs of 16 bits; sums in int32 are exact.
"""

from typing import Any, NamedTuple

import numpy as np

from burn.backend.cpu.jit.images.convolution_source import TILES, Tiles
from burn.backend.cpu.jit.integers.product_source import ROW, source_of
from burn.backend.cpu.jit.machine import machine
from burn.backend.cpu.jit.source import Kernel
from burn.backend.cpu.onednn.binding.memory import address
from burn.ops.support import Array
from burn.record.memory_advice import forget

#: The most rows of a block, whose numbers of a pass are a part of the L2 cache.
_MOST_ROWS = 160


class IntegerProduct(NamedTuple):
    """The operands: x [M, K] of 8 bits and its zero point (int32, one number), weight
    [O, K] of int8 and its zero point, the factors and the bias [O] in float32, and out
    [M, O]. The weight, its zero point and the bias are constants.

    ``scratch`` has :func:`scratch_floats` for each of the threads.
    """

    x: Array
    zero_point: Array
    weight: Array
    weight_zero_point: Array | None
    factors: Array
    bias: Array | None
    out: Array
    scratch: Array


def scratch_floats(rows: int) -> int:
    """Return the floats of memory of a thread for M = ``rows``, on any processor."""
    return max(_block(rows, tiles) for tiles in TILES.values()) * ROW // 4


def _block(rows: int, tiles: Tiles) -> int:
    """Return the rows of a block: those of several tiles, or all."""
    each = tiles.pixels[0]
    return min(rows, _MOST_ROWS // each * each)


def product_kernel(given: IntegerProduct) -> Kernel:
    """Return the kernel of a product, scaled by the factors of its columns."""
    x, out, scratch = given.x, given.out, given.scratch
    tiles = TILES[machine().floats]
    lanes, (rows, depth), outputs = tiles.channels, x.shape, len(given.weight)
    block = _block(rows, tiles)
    panels = _packed(given.weight, given.weight_zero_point, lanes)
    forget(given.weight)
    bias = np.zeros(panels.shape[0] * lanes, np.float32)
    bias[:outputs] = 0 if given.bias is None else given.bias
    blocks = -(-rows // block)
    units = blocks * len(panels)
    parts = max(min(scratch.size // scratch_floats(rows), units), 1)
    arrays = (x, given.zero_point, panels, given.factors, bias, out, scratch)
    words = (
        *(parts, *map(address, arrays), units, len(panels), block, rows, depth),
        *(outputs, panels[0].nbytes, block * ROW),
    )
    work = rows * outputs * depth // 2
    text = source_of(tiles, is_signed=x.dtype == np.int8)
    return Kernel(text, (), words, work, parts, owned=arrays)


def _packed(weight: Array, zero_point: Array | None, lanes: int) -> Any:
    """Return weights [O, K] less their zero point as panels [O / lanes, K / 2, lanes,
    2], with zeros at the ends.
    """
    outputs, depth = weight.shape
    count, pairs = -(-outputs // lanes), -(-depth // 2)
    whole = np.zeros((count * lanes, 2 * pairs), np.int16)
    shift = 0 if zero_point is None else int(zero_point.reshape(()))
    np.subtract(weight, np.int16(shift), out=whole[:outputs, :depth])
    panels = whole.reshape(count, lanes, pairs, 2).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(panels)
