"""Grid sampling, and affine grids."""

from math import prod
from typing import Any, Literal

from burn import dtypes
from burn.ops.activation import clip
from burn.ops.broadcast import expand
from burn.ops.casting import cast
from burn.ops.creation import arange
from burn.ops.elementwise import abs, floor, round
from burn.ops.indexing import getitem
from burn.ops.logic import where
from burn.ops.matmul import matmul
from burn.ops.padding import stack
from burn.ops.sampling import Taps, crossed, gather_sum, within
from burn.ops.shape import reshape, transpose
from burn.ops.support import Array, integers, on_host
from burn.primitive import composite
from burn.tensor import Tensor

Padding = Literal["zeros", "border", "reflection"]

# The coefficient of Keys' cubic.
_A = -0.75


@composite
def grid_sample(
    x: Array,
    grid: Array,
    *,
    mode: str = "linear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Tensor:
    """Return ``x`` [N, C, *size] sampled at ``grid`` [N, *count, rank]: [N, C, *count].

    A point has one coordinate for each spatial axis, the last axis first. -1 and 1 are
    the centers of the first and last element with ``align_corners``, else their outer
    borders. Outside, ``padding_mode`` is ``"zeros"``, ``"border"`` (the nearest
    element) or ``"reflection"``; as in PyTorch, it applies to each element of a cubic
    separately. Integers are sampled as floats and truncated.

    Raises:
        ValueError: ``mode`` is unknown.
    """
    if mode not in ("nearest", "linear", "cubic"):
        raise ValueError(f"expected nearest, linear or cubic, got {mode!r}")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"expected zeros, border or reflection, got {padding_mode!r}")
    (batch, channels, *size), rank = x.shape, grid.shape[-1]
    count = grid.shape[1:-1]
    points = reshape(grid, (batch, prod(count), rank))
    if grid.dtype in dtypes.HALVES:
        points = cast(points, dtype=dtypes.float32)
    axes = []
    for axis, extent in enumerate(size):
        at = getitem(points, (..., rank - 1 - axis))
        axes.append(_taps(at, extent, mode, padding_mode, align_corners))
    index, weight = crossed(axes, tuple(size))
    flat = reshape(x, (batch, channels, prod(size)))
    out = gather_sum(flat, index, None if mode == "nearest" else weight)
    return reshape(out, (batch, channels, *count))


def _taps(
    at: Any, extent: int, mode: str, padding_mode: str, align_corners: bool
) -> Taps:
    """Return the neighbors of each coordinate along one axis, and their weights."""
    if align_corners:
        at, low, high = (at + 1.0) * 0.5 * (extent - 1), 0.0, extent - 1.0
    else:
        at, low, high = ((at + 1.0) * extent - 1.0) * 0.5, -0.5, extent - 0.5
    if mode == "nearest":
        at = round(at)
    if padding_mode == "border" and mode != "cubic":
        at = clip(at, 0.0, extent - 1.0)
    if padding_mode == "reflection":
        at = _reflect(at, low, high)
    # Positions further out are outside as well; these fit into int64.
    at = clip(at, -3.0, extent + 2.0)
    start = floor(at)
    first = cast(where(start == start, start, -3.0), dtype=dtypes.int64)
    behind = at - start
    if mode == "nearest":
        return [(_padded(first, extent, padding_mode, align_corners), behind + 1.0)]
    offsets = (0, 1) if mode == "linear" else (-1, 0, 1, 2)
    weigh = _triangle if mode == "linear" else _cubic
    return [
        (
            _padded(first + offset, extent, padding_mode, align_corners),
            weigh(abs(behind - offset), offset in (0, 1)),
        )
        for offset in offsets
    ]


def _padded(position: Any, extent: int, padding_mode: str, align_corners: bool) -> Any:
    """Return indices along an axis of ``extent`` after padding."""
    if padding_mode == "zeros":
        return within(position, extent)
    if padding_mode == "border":
        return clip(position, 0, extent - 1)
    # Reflected, the elements repeat forwards and backwards; at a center, without it.
    turn = extent - 1 if align_corners else extent
    if turn == 0:
        return position * 0
    position = position % (2 * turn)
    beyond = position >= extent
    return where(beyond, 2 * turn - (0 if align_corners else 1) - position, position)


def _reflect(at: Any, low: float, high: float) -> Any:
    """Return ``at`` reflected at both borders until it lies between them."""
    span = high - low
    if span == 0:
        return at * 0.0
    distance = abs(at - low)
    flips = floor(distance / span)
    rest = distance - flips * span
    return where(flips % 2 == 0, rest + low, high - rest)


def _triangle(distance: Any, near: bool) -> Any:
    return 1.0 - distance


def _cubic(distance: Any, near: bool) -> Any:
    d = distance
    if near:
        return ((_A + 2.0) * d - (_A + 3.0)) * d * d + 1.0
    return ((_A * d - 5.0 * _A) * d + 8.0 * _A) * d - 4.0 * _A


@composite
def affine_grid(theta: Array, size: Any, *, align_corners: bool = False) -> Tensor:
    """Return the points [N, *space, rank] that ``theta`` [N, rank, rank + 1] maps to.

    ``size`` is [N, C, *space], that of an image to be sampled there. The grid covers
    -1 to 1 along every axis of space: between the centers of the first and the last
    element with ``align_corners``, else between their outer borders.
    """
    batch, _, *space = integers(on_host(size))
    rank = len(space)
    wide = dtypes.float32 if theta.dtype in dtypes.HALVES else theta.dtype
    columns = [reshape(_centres(1, True, wide) * 0.0 + 1.0, (1,) * rank)]
    for axis, extent in enumerate(space):
        shape = tuple(extent if a == axis else 1 for a in range(rank))
        columns.insert(0, reshape(_centres(extent, align_corners, wide), shape))
    points = stack([expand(column, tuple(space)) for column in columns], -1)
    flat = reshape(points, (prod(space), rank + 1))
    mapped = matmul(flat, transpose(cast(theta, dtype=wide), 1, 2))
    return cast(reshape(mapped, (batch, *space, rank)), dtype=theta.dtype)


def _centres(extent: int, align_corners: bool, dtype: Any) -> Any:
    """Return the coordinates of the elements of an axis between -1 and 1."""
    index = arange(extent, dtype=dtype)
    if align_corners:
        return index * (2.0 / max(extent - 1, 1)) - 1.0
    return (index * 2.0 + 1.0) / extent - 1.0
