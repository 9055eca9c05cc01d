"""Convolutions of channels-last images as machine code.

A tile of the result, some pixels of a line by some channels of a group, is in registers
while the products of its windows with weights are added. Weights are packed once, in
panels of the channels of a tile. Windows are read from the image: no matrix of them is
made.
"""

from math import prod
from typing import Any, NamedTuple

import numpy as np

from burn.backend.cpu.jit.images.convolution_source import (
    NARROW,
    TILES,
    Tiles,
    source_of,
)
from burn.backend.cpu.jit.machine import machine
from burn.backend.cpu.jit.source import Kernel
from burn.backend.cpu.onednn.binding.memory import address
from burn.ops.support import Array
from burn.ops.window import Windows
from burn.record.memory_advice import forget

#: The bytes of an image, and the rows of a panel of weights, that are read again and
#: again while they are in the cache.
_IMAGE, _PANEL = 1 << 18, 1 << 10
#: The pixels of a line of an image without windows, which is cut at any pixel.
_LINE = 112


class Lines(NamedTuple):
    """The lines of pixels of an image and a result; strides and offsets are in bytes.

    The last of the lines is shorter if they have more pixels than ``total``.
    """

    number: int
    width: int
    total: int
    stride: int
    pixel: int
    taps: tuple[int, ...]


def convolution_kernel(
    image: Array,
    weight: Array,
    bias: Array | None,
    residual: Array | None,
    out: Array,
    wins: Windows,
    limits: tuple[float, float],
) -> Kernel:
    """Return the kernel of the products of windows of ``image`` [N, *size, C] with
    ``weight`` [*K, C/G, O] in G groups.

    It adds ``bias`` [O] and ``residual``, which has the layout of the dense ``out``
    [N, *count, O], and clips the sums to ``limits``.
    """
    channels, outputs = weight.shape[-2:]
    groups = image.shape[-1] // channels
    tiles = _tiles(groups, outputs // groups)
    lines = _lines(image, out, wins)
    panels = _packed(weight.reshape(-1, outputs), groups, tiles.channels)
    axes = range(weight.ndim)
    forget(weight.transpose(*axes[:-3:-1], *axes[:-2]))  # as it was in its file
    shift = np.zeros(outputs + tiles.channels, np.float32)
    shift[:outputs] = 0 if bias is None else bias
    passes = np.array([*_passes(len(lines.taps), channels, tiles.channels)], np.int64)
    arrays = (image, panels, out, residual, shift)
    tables = (np.array(limits, np.float32), np.array(lines.taps, np.int64), passes)
    images = len(out)
    words = (
        images * lines.number,
        *(0 if array is None else address(array) for array in (*arrays, *tables)),
        *(len(passes), len(panels), panels[0].nbytes, lines.number, lines.width),
        *(lines.total, lines.stride, image.strides[0], lines.width * 4 * outputs),
        *(4 * out.size // images, 4 * outputs, outputs // groups),
        max(_IMAGE // max(lines.stride, 1), 1),
        *(len(panels) // groups, 4 * channels),
    )
    work = prod(out.shape) * panels.shape[1] // 4
    text = source_of(tiles, lines.pixel)
    return Kernel(text, (), words, work, words[0], owned=(*arrays, *tables))


def _tiles(groups: int, outputs: int) -> Tiles:
    """Return the tiles for groups with so many ``outputs`` each."""
    narrow = NARROW[machine().floats]
    if groups > 1 and outputs <= narrow.channels:
        return narrow
    return TILES[machine().floats]


def _lines(image: Array, out: Array, wins: Windows) -> Lines:
    """Return the lines of an image of one or two spatial axes."""
    height, width = (1, *out.shape[1:-1])[-2:]
    down, across = (0, *image.strides[1:-1])[-2:]
    first, second = (1, *wins.kernel)[-2:]
    gap, step = (1, *wins.dilation)[-2:]
    taps = tuple(
        row * gap * down + column * step * across
        for row in range(first)
        for column in range(second)
    )
    if wins.taps == 1 and image.flags.c_contiguous and prod(wins.stride) == 1:
        total = height * width
        line = min(_LINE, total)
        # The stride of an axis of extent 1 can be any number.
        pixel = image.itemsize * image.shape[-1]
        return Lines(-(-total // line), line, total, line * pixel, pixel, taps)
    below, right = (1, *wins.stride)[-2:]
    total = height * width
    return Lines(height, width, total, below * down, right * across, taps)


def _packed(matrix: Array, groups: int, columns: int) -> Array:
    """Return a matrix in panels [count, rows, columns], with zeros at the end of each
    of the ``groups`` of its columns.
    """
    rows, width = matrix.shape
    each = -(-width // groups // columns)
    whole = np.zeros((rows, groups, each * columns), np.float32)
    whole[..., : width // groups] = matrix.reshape(rows, groups, -1)
    panels = whole.reshape(rows, groups * each, columns).transpose(1, 0, 2)
    return np.ascontiguousarray(panels)


def _passes(taps: int, channels: int, columns: int) -> Any:
    """Yield the first tap and the number of taps, the bytes before the first channel,
    the number of channels and the bytes before the rows of panels, for each pass.
    """
    together = max(_PANEL // channels, 1)
    for tap in range(0, taps, together):
        count = min(together, taps - tap)
        some = channels if count > 1 else min(channels, _PANEL)
        for first in range(0, channels, some):
            row = tap * channels + first
            width = min(some, channels - first)
            yield tap, count, 4 * first, width, 4 * row * columns
