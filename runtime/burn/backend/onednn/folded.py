"""First convolutions of images, with four neighbours for the channels of one element.

Code for convolutions is slow on three channels. A window of 7 x 7 that moves by two is
one of 4 x 4, over an image of half the extents and four times the channels, that moves
by one: more is multiplied, in less time. What is multiplied by zeros must be finite, as
it is in plans, and what is trained should be rounded as in eager calls: the weights
are constants.
"""

from itertools import product

import numpy as np

from burn.backend.onednn.cache import Primitives
from burn.backend.onednn.memory import (
    Array,
    address,
    is_dense,
    of_array,
    row_major,
    strided,
)
from burn.backend.onednn.noting import compact, empty
from burn.backend.onednn.operands import FLOAT32
from burn.backend.onednn.prepared import Prepared
from burn.ops.window import Windows

#: Beyond these, and with smaller windows, it takes longer.
_CHANNELS, _KERNEL = 4, 5


class Folded:
    """A convolution over two by two elements each: its extents, and its operands.

    ``x`` is [N, C, 2H, 2W] and becomes [N, 4C, H, W], ``weight`` [O, C, *K] becomes
    [O, 4C, *K'] with zeros where a window does not start with the first of two.
    """

    def __init__(self, x: tuple[int, ...], outputs: int, wins: Windows) -> None:
        batch, channels, *size = x
        self._late = tuple(before % 2 for before, _ in wins.pads)
        half = tuple(extent // 2 for extent in size)
        kernel = tuple(
            -(-(extent + late) // 2)
            for extent, late in zip(wins.kernel, self._late, strict=True)
        )
        before = tuple(-(-pads[0] // 2) for pads in wins.pads)
        after = tuple(
            count - 1 + taps - extent - start
            for count, taps, extent, start in zip(
                wins.count, kernel, half, before, strict=True
            )
        )
        pads = tuple(zip(before, after, strict=True))
        self.wins = Windows(half, kernel, (1, 1), (1, 1), pads, wins.count)
        self.x = (batch, 4 * channels, *half)
        self.weight = (outputs, 4 * channels, *kernel)

    def image(self, primitives: Primitives, x: Array) -> "_Image | None":
        """What brings images like ``x`` into the form."""
        batch, channels, height, width = x.shape
        extents = (batch, channels, height // 2, 2, width // 2, 2)
        (first, second, down, right), size = x.strides, x.itemsize
        if not is_dense(x):
            first, second, down, right = (size * s for s in row_major(x.shape))
        steps = (first, second, 2 * down, down, 2 * right, right)
        source = strided(
            *(primitives.api, extents, tuple(step // size for step in steps), x.dtype)
        )
        target = of_array(primitives.api, _seen(np.empty(_memory(self.x), x.dtype)))
        reorder = primitives.reorder(source, target)
        return None if reorder is None else _Image(reorder, self.x)

    def weights(self, weight: Array) -> Array:
        """A copy of ``weight`` in the form."""
        outputs, channels, *_ = weight.shape
        found = np.zeros((outputs, 2, 2, channels, *self.wins.kernel), weight.dtype)
        for down, right in product((0, 1), (0, 1)):
            rows, pairs = _each_second(down, self._late[0], weight.shape[2])
            columns, others = _each_second(right, self._late[1], weight.shape[3])
            found[:, down, right, :, pairs, others] = weight[:, :, rows, columns]
        return found.reshape(self.weight)


def _each_second(place: int, late: int, extent: int) -> tuple[slice, slice]:
    """Which weights are at ``place`` of two, and the pairs that they are in."""
    first = (place - late) % 2
    start = (first + late) // 2
    return slice(first, None, 2), slice(start, start + (extent - first + 1) // 2)


class _Image:
    """How an image gets into the form, with its channels side by side."""

    def __init__(self, reorder: Prepared, shape: tuple[int, ...]) -> None:
        self._reorder, self._shape = reorder, shape

    def __call__(self, x: Array) -> Array:
        if not is_dense(x):
            x = compact(x)
        found = empty(_memory(self._shape), x.dtype)
        self._reorder.run(address(x), address(found))
        return found.reshape(self._shape[0], *self._shape[2:], -1).transpose(0, 3, 1, 2)


def _memory(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The extents of [N, 4C, H, W] in the order of memory."""
    batch, channels, height, width = shape
    return batch, height, width, 2, 2, channels // 4


def _seen(memory: Array) -> Array:
    """That memory as [N, C, H, 2, W, 2]."""
    return memory.transpose(0, 5, 1, 3, 2, 4)


def folded(x: Array, outputs: int, wins: Windows) -> Folded | None:
    """How a convolution of ``x`` is done so; None where it is none or does not pay."""
    if x.ndim != 4 or x.shape[1] > _CHANNELS or x.dtype != FLOAT32:
        return None
    if (*wins.stride, *wins.dilation) != (2, 2, 1, 1) or min(wins.kernel) < _KERNEL:
        return None
    if any(extent % 2 for extent in wins.size) or min(wins.pads)[0] < 0:
        return None
    found = Folded(x.shape, outputs, wins)
    fits = all(
        after >= 0 and extent >= taps
        for (_, after), extent, taps in zip(
            found.wins.pads, found.wins.size, found.wins.kernel, strict=True
        )
    )
    return found if fits else None
