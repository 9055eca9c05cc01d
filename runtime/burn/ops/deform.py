"""Deformable convolution: each kernel position is sampled at its own offset."""

from math import prod
from typing import Any

from burn import dtypes
from burn.ops.casting import cast
from burn.ops.creation import arange
from burn.ops.indexing import getitem
from burn.ops.matmul import matmul
from burn.ops.sampling import crossed, gather_sum, linear_taps
from burn.ops.shape import reshape
from burn.ops.support import Array
from burn.ops.window import Extents, Padding, Windows, windows
from burn.primitive import composite
from burn.tensor import Tensor


@composite
def deform_conv(
    x: Array,
    weight: Array,
    offset: Array,
    bias: Array | None = None,
    mask: Array | None = None,
    *,
    stride: Extents = 1,
    padding: Padding = 0,
    dilation: Extents = 1,
    groups: int = 1,
    offset_groups: int = 1,
) -> Tensor:
    """Return the deformable convolution of ``x`` [N, C, *size] (J. Dai et al., 2017).

    ``weight`` is [O, C/groups, *K]. Kernel position k of a window is sampled with the
    displacement ``offset`` [N, offset_groups prod(K) rank, *count], with linear
    interpolation, and multiplied by ``mask`` [N, offset_groups prod(K), *count]. The
    offsets of a position have one entry for each axis. Each of ``offset_groups`` equal
    parts of the channels has its own offsets. The result is [N, O, *count].

    Raises:
        ValueError: the offsets are for another number of windows.
    """
    wins = windows(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    count = wins.count
    if offset.shape[2:] != count:
        raise ValueError(f"expected offsets of {count} windows, got {offset.shape}")
    columns = _columns(x, offset, mask, wins, offset_groups)
    rows = columns.shape[1] // groups
    matrix = reshape(columns, (x.shape[0], groups, rows, prod(count)))
    kernel = reshape(weight, (groups, weight.shape[0] // groups, rows))
    out = reshape(matmul(kernel, matrix), (x.shape[0], weight.shape[0], *count))
    if bias is not None:
        out = out + reshape(bias, (-1, *(1 for _ in count)))
    return out


def _columns(x: Any, offset: Any, mask: Any, wins: Windows, offset_groups: int) -> Any:
    """Return the sampled values of all windows: [N, C prod(K), prod(count)]."""
    batch, channels, *size = x.shape
    rank, count = len(size), wins.count
    wide = dtypes.float32 if offset.dtype in dtypes.HALVES else offset.dtype
    parts = batch * offset_groups
    moves = cast(reshape(offset, (parts, *wins.kernel, rank, *count)), dtype=wide)
    axes = []
    for axis, extent in enumerate(size):
        key = (slice(None),) * (rank + 1) + (axis,)
        at = getitem(moves, key) + _places(wins, axis, wide)
        axes.append(linear_taps(reshape(at, (parts, wins.taps * prod(count))), extent))
    index, share = crossed(axes, tuple(size))
    within = channels // offset_groups
    read = gather_sum(reshape(x, (parts, within, prod(size))), index, share)
    if mask is not None:
        read = read * reshape(mask, (parts, 1, wins.taps * prod(count)))
    return reshape(read, (batch, channels * wins.taps, prod(count)))


def _places(wins: Windows, axis: int, dtype: Any) -> Any:
    """Return the coordinates of kernel positions along ``axis``: [1, *K, *count]."""
    rank = len(wins.kernel)
    start = arange(wins.count[axis], dtype=dtype) * wins.stride[axis]
    start = start - wins.pads[axis][0]
    offset = arange(wins.kernel[axis], dtype=dtype) * wins.dilation[axis]
    of_window = tuple(-1 if a == axis else 1 for a in range(rank))
    still = (1,) * rank
    return reshape(offset, (1, *of_window, *still)) + reshape(
        start, (1, *still, *of_window)
    )
