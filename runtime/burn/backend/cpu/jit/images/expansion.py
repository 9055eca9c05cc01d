"""A pointwise convolution and the depthwise one that reads it as one kernel.

Lines of the pointwise convolution are written to a ring of as many lines as a window
has. They stay in the cache, and are not written to memory. Each thread has a ring, and
computes the lines at its borders again.
"""

from typing import Any

import numpy as np

from burn.backend.cpu.jit.images.convolution_source import NARROW, TILES, Tiles
from burn.backend.cpu.jit.images.depthwise_source import Form, source_of
from burn.backend.cpu.jit.machine import machine
from burn.backend.cpu.jit.operands import Expansion
from burn.backend.cpu.jit.pool import parallel_parts
from burn.backend.cpu.jit.source import Kernel
from burn.backend.cpu.onednn.binding.memory import address
from burn.ops.support import Array

#: The bytes of a line of the cache, and the floats that are read behind a line.
_CACHE_LINE, _BEHIND = 64, 64


def expansion_kernel(given: Expansion) -> Kernel:
    """Return the kernel of both convolutions.

    Windows are square, without dilation, and padding is not negative.
    """
    image, (weight, bias, kind, limits), depthwise, out, wins = given
    channels, inner = weight.shape
    count, height, width, _ = image.shape
    lines, columns = wins.count
    taps, (top, left) = wins.kernel[0], (pads[0] for pads in wins.pads)
    form = _form(weight.shape, width, columns, (kind, depthwise.kind))
    lanes = form.narrow.channels
    held = -(-channels // lanes) * lanes
    line = held * (width + sum(wins.pads[1]))
    ring = -(-(taps * line + _BEHIND) // 16) * 16
    parts = parallel_parts(count * lines)
    panels = _panels(weight, form)
    arrays = (
        *(image, panels, _padded(bias, channels + form.wide.channels), limits),
        *(_taps(depthwise.weight, lanes), _padded(depthwise.bias, held)),
        *(depthwise.numbers, _zeros(parts * ring), _zeros(line + _BEHIND)),
        *(np.zeros((parts, taps * taps), np.int64), np.zeros(1, np.int64), out),
    )
    words = (
        *(parts, *map(address, arrays), count * lines, height, width, channels, inner),
        *(-(-channels // form.wide.channels), 4 * inner * form.wide.channels),
        *(taps, wins.stride[0], top, 4 * left * held, lines, columns),
        *(4 * ring, 4 * line, 4 * held, 8 * taps * taps),
    )
    work = (image.size * channels + out.size * taps * taps) // 2
    return Kernel(source_of(form), (), words, work, parts, owned=arrays)


def _form(
    weight: tuple[int, ...], width: int, columns: int, kinds: tuple[str, str]
) -> Form:
    """Return the form for weights [C, I], and lines of ``width`` and ``columns``."""
    channels, inner = weight
    floats = machine().floats
    wide, narrow = TILES[floats], NARROW[floats]
    sizes = _sizes(wide.pixels[0], width)
    others = _sizes(narrow.pixels[0], columns)
    half = Tiles(sizes, wide.channels // 2)
    wide, narrow = wide._replace(pixels=sizes), narrow._replace(pixels=others)
    has_half = 0 < channels % wide.channels <= half.channels
    return Form(wide, half, narrow, 4 * inner, kinds, has_half)


def _sizes(most: int, width: int) -> tuple[int, ...]:
    """Return the sizes of the tiles that a line is cut into: equal ones and a rest."""
    count = -(-width // most)
    size = -(-width // count)
    rest = width - (count - 1) * size
    return (size,) if rest == size else (size, rest)


def _panels(weight: Array, form: Form) -> Array:
    """Return weights [C, I] in panels of the channels of a tile, the last of half."""
    channels, inner = weight.shape
    wide, half = form.wide.channels, form.half.channels
    panels = _zeros(-(-channels // wide) * wide * inner)
    for start in range(0, channels, wide):
        rows = weight[start : start + wide]
        columns = wide if len(rows) > half else half
        panel = panels[start * inner :][: columns * inner].reshape(inner, columns)
        panel[:, : len(rows)] = rows.T
    return panels


def _taps(weight: Array, lanes: int) -> Array:
    """Return weights [C, k, k] as [blocks, k * k, lanes], with zeros at the end."""
    channels = len(weight)
    blocks = -(-channels // lanes)
    flat = _zeros(weight[0].size * blocks * lanes).reshape(blocks, -1, lanes)
    whole = np.zeros((blocks * lanes, weight[0].size), np.float32)
    whole[:channels] = weight.reshape(channels, -1)
    flat[...] = whole.reshape(blocks, lanes, -1).swapaxes(1, 2)
    return flat


def _padded(bias: Array | None, size: int) -> Array:
    """Return a bias with zeros up to ``size``."""
    whole = np.zeros(size, np.float32)
    if bias is not None:
        whole[: len(bias)] = bias
    return whole


def _zeros(count: int) -> Array:
    """Return zeros from the start of a line of the cache.

    A register that is on two lines takes twice as long to read.
    """
    memory: Any = np.zeros(count + _CACHE_LINE // 4, np.float32)
    skipped = -address(memory) % _CACHE_LINE // 4
    return memory[skipped : skipped + count]
