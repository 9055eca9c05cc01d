"""First-layer convolutions with pairs of rows moved into channels.

Convolution code is slow for three channels. A 7 x 7 window with a row stride of two is
a 4 x 7 window with a row stride of one, over an image of half the rows and twice the
channels: more multiplications, in less time. With AVX2 the library has faster code for
three channels as they are: on an AMD EPYC with one thread it takes 0.57 to 0.96 of the
time of this form for seven layers. Operands multiplied by zeros must be
finite, as in plans, and trained layers should round like eager calls: so the weights
must be constants.
"""

import numpy as np

from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import compact, empty
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    address,
    is_dense,
    of_array,
    row_major,
    strided,
)
from burn.backend.cpu.onednn.binding.operands import FLOAT32
from burn.backend.cpu.onednn.binding.prepared import Prepared
from burn.ops.window import Windows

#: The input channels, the least output channels and the least rows of a window for
#: which this form is faster.
_LEAST, _MOST, _OUTPUTS, _ROWS = 2, 4, 32, 3
#: The implementations that are fast for so few channels without it.
DIRECT = ("jit:avx2",)


class SpaceToDepth:
    """A convolution over pairs of rows: its extents and operands.

    ``x`` [N, C, 2H, W] becomes [N, 2C, H, W], ``weight`` [O, C, rows, columns] becomes
    [O, 2C, rows', columns], padded with zeros if a window does not start with the first
    row of a pair.
    """

    def __init__(self, x: tuple[int, ...], outputs: int, wins: Windows) -> None:
        batch, channels, height, width = x
        above, taps, count = wins.pads[0][0], wins.kernel[0], wins.count[0]
        self._late = above % 2
        rows = -(-(taps + self._late) // 2)
        pads = (-(-above // 2), count - 1 + rows - height // 2 - -(-above // 2))
        self.wins = Windows(
            *((height // 2, width), (rows, wins.kernel[1]), (1, wins.stride[1])),
            *(wins.dilation, (pads, wins.pads[1]), wins.count),
        )
        self.x = (batch, 2 * channels, height // 2, width)
        self.weight = (outputs, 2 * channels, *self.wins.kernel)

    def image(self, primitives: Primitives, x: Array) -> "_Image | None":
        """Return the copy of images like ``x`` into this form."""
        batch, channels, height, width = x.shape
        (first, second, down, right), size = x.strides, x.itemsize
        if not is_dense(x):
            first, second, down, right = (size * s for s in row_major(x.shape))
        steps = tuple(step // size for step in (first, second, 2 * down, down, right))
        extents = (batch, channels, height // 2, 2, width)
        source = strided(primitives.api, extents, steps, x.dtype)
        target = of_array(
            primitives.api, _view_pairs(np.empty(_memory(self.x), x.dtype))
        )
        reorder = primitives.reorder(source, target)
        return None if reorder is None else _Image(reorder, self.x)

    def weights(self, weight: Array) -> Array:
        """Return a copy of ``weight`` in this form."""
        outputs, channels, taps, columns = weight.shape
        rows = self.wins.kernel[0]
        packed = np.zeros((outputs, rows, 2, channels, columns), weight.dtype)
        for tap in range(taps):
            row, half = divmod(tap + self._late, 2)
            packed[:, row, half] = weight[:, :, tap]
        return (
            packed.reshape(outputs, rows, 2 * channels, columns).swapaxes(1, 2).copy()
        )


class _Image:
    """The copy of an image into this form, channels-last."""

    def __init__(self, reorder: Prepared, shape: tuple[int, ...]) -> None:
        self._reorder, self._shape = reorder, shape

    def __call__(self, x: Array) -> Array:
        if not is_dense(x):
            x = compact(x)
        packed = empty(_memory(self._shape), x.dtype)
        self._reorder.run(address(x), address(packed))
        return packed.reshape(self._shape[0], *self._shape[2:], -1).transpose(
            0, 3, 1, 2
        )


def _memory(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the extents of [N, 2C, H, W] in memory order."""
    batch, channels, height, width = shape
    return batch, height, width, 2, channels // 2


def _view_pairs(memory: Array) -> Array:
    """Return that memory viewed as [N, C, H, 2, W]."""
    return memory.transpose(0, 4, 1, 3, 2)


def space_to_depth(x: Array, outputs: int, wins: Windows) -> SpaceToDepth | None:
    """Return this form of a convolution; None if unsupported or not faster."""
    if x.ndim != 4 or not _LEAST <= x.shape[1] <= _MOST or x.dtype != FLOAT32:
        return None
    if (*wins.stride, *wins.dilation) != (2, 2, 1, 1) or outputs < _OUTPUTS:
        return None
    if wins.kernel[0] < _ROWS or x.shape[2] % 2 or min(wins.pads)[0] < 0:
        return None
    form = SpaceToDepth(x.shape, outputs, wins)
    (_, below), rows = form.wins.pads[0], form.wins.kernel[0]
    return form if below >= 0 and form.wins.size[0] >= rows else None
