"""Convolutions of narrow images, packed side by side.

AMX code multiplies sixteen pixels of a row at a time, even if there are fewer. Two
images of eight columns per row, with zeros between, take 0.6 to 0.96 of the time,
including the copies. Operands multiplied by zeros must be finite, as in plans.
"""

from typing import TypeAlias

import numpy as np

from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import noting
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    address,
    channels_last,
    row_major,
    strided,
)
from burn.backend.cpu.onednn.binding.operands import Arranged
from burn.backend.cpu.onednn.binding.prepared import Prepared
from burn.backend.cpu.onednn.kernels.convolution.rebatch import Form
from burn.dtypes import DType
from burn.ops.window import Windows

#: The number of pixels that are multiplied at a time, and the least channels measured.
_PIXELS, _CHANNELS = 16, 256
#: Extents [N / k, k, H, W, C], and strides in elements.
_Places: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]


class PackedWidth:
    """Images [N, C, H, W] packed as [N / k, C, H, k * P], and the results.

    Zeros follow each image, so that no window covers two. There are ``count`` windows
    in P columns; the last ones may be unused.
    """

    def __init__(self, form: Form, images: int, count: int) -> None:
        (batch, channels, height, _), wins = form.x, form.wins
        rows, columns, stride = wins.count[0], images * count, wins.stride[1]
        self._given, self._images, self._count = form, images, count
        self._width = count * stride
        size, (above, (left, _)) = (height, images * self._width), wins.pads
        self.right = (columns - 1) * stride + _window_columns(wins) - size[1] - left
        pads = (above, (left, self.right))
        self.form = Form(
            (batch // images, channels, *size),
            (batch // images, form.shape[1], rows, columns),
            Windows(
                *(size, wins.kernel, wins.stride, wins.dilation),
                *(pads, (rows, columns)),
            ),
        )

    def image(self, primitives: Primitives, x: Array) -> "_Image | None":
        """Return the copies of images like ``x`` into packed form."""
        extents, images = self._given.x, self._images
        places = _channels_last_layout(extents, images), _packed_layout(
            extents, images, self._width
        )
        move = primitives.reorder(
            *(strided(primitives.api, *region, x.dtype) for region in places)
        )
        last = Arranged(primitives, x, channels_last(extents))
        return None if move is None else _Image(last, move, self.form.x)

    def back(self, primitives: Primitives, dtype: DType) -> Prepared | None:
        """Return the copy of results out of packed form, None if not needed."""
        shape, images = self._given.shape, self._images
        places = _packed_layout(shape, images, self._count), _channels_last_layout(
            shape, images
        )
        return primitives.reorder(
            *(strided(primitives.api, *region, dtype) for region in places)
        )


class _Image:
    """The copies of images into packed form."""

    def __init__(self, last: Arranged, move: Prepared, shape: tuple[int, ...]) -> None:
        self._last, self._move, self._shape = last, move, shape

    def __call__(self, x: Array) -> Array:
        batch, channels, *size = self._shape
        # The zeros between images are never overwritten, since the memory is not
        # shared.
        memory = np.zeros((batch, *size, channels), x.dtype)
        notes = noting()
        if notes is not None:
            notes.keep(memory)
        self._move.run(address(self._last(x)), address(memory))
        return memory.transpose(0, 3, 1, 2)


def packed_width(form: Form, implementation: str) -> PackedWidth | None:
    """Return the packed form of a convolution; None if unsupported or not faster."""
    wins, (batch, channels, *size) = form.wins, form.x
    if not implementation.endswith("amx") or len(size) != 2 or wins.taps == 1:
        return None
    left, stride, last = wins.pads[1][0], wins.stride[1], wins.count[1] - 1
    if channels < _CHANNELS or left < 0:
        return None
    needed = max(size[1] + left, last * stride - left + _window_columns(wins))
    count = max(wins.count[1], -(-needed // stride))
    fitting = range(1, _PIXELS // count + 1)
    images = max((n for n in fitting if batch % n == 0), default=1)
    if images == 1:
        return None
    packing = PackedWidth(form, images, count)
    return packing if packing.right >= 0 else None


def _window_columns(wins: Windows) -> int:
    """Return the number of columns that a window covers."""
    return wins.dilation[1] * (wins.kernel[1] - 1) + 1


def _channels_last_layout(extents: tuple[int, ...], images: int) -> _Places:
    """Return the channels-last layout of [N, C, H, W]."""
    batch, channels, *size = extents
    shape = (batch // images, images, *size, channels)
    return shape, row_major(shape)


def _packed_layout(extents: tuple[int, ...], images: int, width: int) -> _Places:
    """Return the layout [N / k, H, k, width, C] of [N, C, H, W]."""
    batch, channels, *size = extents
    row = images * width * channels
    strides = (size[0] * row, width * channels, row, channels, 1)
    return (batch // images, images, *size, channels), strides
