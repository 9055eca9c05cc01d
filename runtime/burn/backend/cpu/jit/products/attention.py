"""Attention as one kernel, whose scores stay in the cache."""

import struct
from itertools import accumulate
from math import inf
from typing import NamedTuple

import numpy as np

from burn.backend.cpu.jit.images.convolution_source import TILES, Tiles
from burn.backend.cpu.jit.machine import machine
from burn.backend.cpu.jit.products.attention_source import Form, source_of
from burn.backend.cpu.jit.source import Kernel
from burn.backend.cpu.onednn.binding.memory import address
from burn.ops.support import Array

#: The bytes of the scores of a block of rows, a part of the L2 cache, and the most rows
#: of a block, whose queries stay in the L1 cache.
_BLOCK, _MOST_ROWS = 1 << 18, 84
#: The floats of a line of the cache.
_LINE = 16
#: The cost of a score beside its products, in additions.
_SCORE = 20


class Attention(NamedTuple):
    """The operands: query [B, H, M, D], key [B, G, N, D], value [B, G, N, E], a mask
    that is added or None, and out [B, H, M, E]. Their last axes have no gaps.

    ``scratch`` has :func:`scratch_floats` for each of the threads.
    """

    query: Array
    key: Array
    value: Array
    mask: Array | None
    out: Array
    scratch: Array
    scale: float
    causal: bool
    empty_is_zero: bool


class _Sizes(NamedTuple):
    """The rows of a block, and the floats of each section of the scratch memory."""

    block: int
    keys: int
    values: int
    query: int
    scores: int


def _sizes(shapes: tuple[int, int, int], tiles: Tiles) -> _Sizes:
    (count, size, columns), lanes, pixels = shapes, tiles.channels, tiles.pixels[0]
    keys = _multiple(count, lanes)
    rows = min(_BLOCK // (4 * keys), _MOST_ROWS)
    block = max(rows // pixels, 1) * pixels
    query = size // _channels(size, lanes) * block * lanes
    values = keys * _multiple(columns, lanes)
    return _Sizes(block, keys * size, values, query, keys * block)


def _multiple(number: int, of: int) -> int:
    """Return the least multiple that is not less than ``number``."""
    return -(-number // of) * of


def _channels(size: int, lanes: int) -> int:
    """Return the largest divisor of ``size`` up to ``lanes``."""
    return next(count for count in range(min(size, lanes), 0, -1) if not size % count)


def scratch_floats(shapes: tuple[int, int, int]) -> int:
    """Return the floats of memory of a thread, on any processor.

    ``shapes`` are the numbers of keys, and of the floats of a key and of a value.
    """
    each = (_sizes(shapes, tiles) for tiles in TILES.values())
    return max(map(_floats, each)) + _LINE


def _floats(sizes: _Sizes) -> int:
    """Return the floats of all sections, and of a factor for each row."""
    return _multiple(sum(sizes), _LINE)


def attention_kernel(given: Attention) -> Kernel:
    """Return the kernel of attention."""
    query, key, value, mask, out, scratch = given[:6]
    tiles = TILES[machine().floats]
    (batch, heads, rows, size), (groups, keys) = query.shape, key.shape[1:3]
    lanes, columns = tiles.channels, out.shape[-1]
    sizes = _sizes((keys, size, columns), tiles)
    blocks = -(-rows // sizes.block)
    floats = _floats(sizes)
    parts = min(scratch.size // (floats + _LINE), batch * heads * blocks)
    channels, panels = _channels(size, lanes), -(-keys // lanes)
    taps, tap = size // channels, 4 * lanes * sizes.block
    arrays = (
        *(query, key, value, mask, out, scratch[-address(scratch) // 4 % _LINE :]),
        *(
            np.arange(max(panels, taps), dtype=np.int64) * tap,
            np.zeros(lanes, np.float32),
        ),
        np.array([-inf, inf], np.float32),
    )
    words = (
        *(parts, *(0 if each is None else address(each) for each in arrays)),
        *(batch * heads * blocks, heads, heads // groups, blocks, sizes.block, rows),
        *(keys, taps, channels, size, columns, _bits(given.scale)),
        *(step for each in (query, key, value, out) for step in each.strides[:3]),
        *((0, 0, 0) if mask is None else mask.strides[:3]),
        *(4 * floats, *(4 * end for end in accumulate(sizes[1:]))),
        *(4 * lanes * size, 4 * lanes * panels * lanes, tap),
    )
    work = batch * heads * rows * keys * ((size + columns) // 2 + _SCORE)
    form = Form(tiles, mask is not None, given.causal, given.empty_is_zero)
    return Kernel(source_of(form), (), words, work, parts, owned=arrays)


def _bits(number: float) -> int:
    bits: int = struct.unpack("<I", struct.pack("<f", number))[0]
    return bits
