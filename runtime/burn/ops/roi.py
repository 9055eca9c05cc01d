"""Pooling over regions of interest."""

from math import prod
from typing import Any

from burn import dtypes
from burn.ops.activation import clip
from burn.ops.casting import cast
from burn.ops.creation import arange
from burn.ops.elementwise import abs, ceil, floor, maximum, minimum, sign
from burn.ops.indexing import getitem
from burn.ops.logic import logical_and, where
from burn.ops.reduction import max as largest
from burn.ops.sampling import gather_max, gather_sum
from burn.ops.shape import concat, permute, reshape, transpose, unsqueeze
from burn.ops.support import Array
from burn.primitive import composite
from burn.tensor import Tensor


@composite
def roi_align(
    x: Array,
    rois: Array,
    batch_indices: Array,
    *,
    output_size: tuple[int, ...],
    spatial_scale: float = 1.0,
    sampling_ratio: int = 0,
    mode: str = "avg",
    aligned: bool = True,
) -> Tensor:
    """Return the mean of sampled points in each bin of each region of ``x`` (RoIAlign).

    ``x`` is [N, C, H, W], ``rois`` [R, 4] (x1, y1, x2, y2 in units of
    ``1 / spatial_scale`` elements), ``batch_indices`` [R] the image of each, and the
    result [R, C, *output_size]. A bin has ``sampling_ratio`` points along each axis,
    with 0 about one an element. ``mode="max"`` takes, instead of the mean, the largest
    of the four weighted elements around any of the points. ``aligned`` shifts regions
    by half an element, so that the center of the first lies at 0.5.

    Raises:
        ValueError: an unknown mode.
    """
    if mode not in ("avg", "max"):
        raise ValueError(f"expected mode avg or max, got {mode!r}")
    wide = dtypes.float32 if rois.dtype in dtypes.HALVES else rois.dtype
    index, weight = _samples(
        x,
        cast(rois, dtype=wide) * spatial_scale - (0.5 if aligned else 0.0),
        batch_indices,
        output_size,
        sampling_ratio,
        aligned,
        mode == "avg",
    )
    if mode == "avg":
        out = gather_sum(_as_one(x), index, weight)
    else:
        out = gather_max(_as_one(x), index, weight)
    return _regions(out, (rois.shape[0], x.shape[1], *output_size))


def _samples(
    x: Any,
    corners: Any,
    batch_indices: Any,
    output_size: tuple[int, ...],
    ratio: int,
    aligned: bool,
    mean: bool,
) -> tuple[Any, Any]:
    """Return the taps of every bin; for a mean, a bin's weights sum to 1."""
    height, width = x.shape[2:]
    along = []
    for axis, extent in enumerate((height, width)):
        start = getitem(corners, (slice(None), 1 - axis))
        span = getitem(corners, (slice(None), 3 - axis)) - start
        if not aligned:
            span = maximum(span, 1.0)
        along.append(_points(start, span, output_size[axis], extent, ratio, mean))
    (rows, of_rows), (columns, of_columns) = along
    image = reshape(cast(batch_indices, dtype=dtypes.int64), (-1, 1, 1, 1, 1))
    rows, columns = _beside(rows, 0), _beside(columns, 1)
    index = (image * height + rows) * width + columns
    index = where(logical_and(rows >= 0, columns >= 0), index, -1)
    return _taps(index), _taps(_beside(of_rows, 0) * _beside(of_columns, 1))


def _points(
    start: Any, span: Any, bins: int, extent: int, ratio: int, mean: bool
) -> tuple[Any, Any]:
    """Return the taps [R, bins, 2 G] of all points along one axis: indices and weights.

    The index of a point that its region does not have is negative.
    """
    size = span / bins
    count = size * 0.0 + ratio if ratio > 0 else ceil(size)
    most = ratio if ratio > 0 else _most(count)
    point = arange(most, dtype=start.dtype)
    bin_starts = _column(start) + _column(size) * arange(bins, dtype=start.dtype)
    number = reshape(maximum(count, 1.0), (-1, 1, 1))
    at = unsqueeze(bin_starts, 2) + (point + 0.5) * (reshape(size, (-1, 1, 1)) / number)
    near = logical_and(at >= -1.0, at <= float(extent))
    at = clip(at, 0.0, extent - 1.0)
    low = floor(at)
    behind = at - low
    exists = point < reshape(count, (-1, 1, 1))
    # A point beside the image is 0 among those of a maximum, and nothing in a sum.
    there = logical_and(exists, near) if mean else exists
    first = cast(where(low == low, low, 0.0), dtype=dtypes.int64)
    taps = []
    for position, weight in (
        (first, 1.0 - behind),
        (minimum(first + 1, extent - 1), behind),
    ):
        taps.append((where(there, position, -1), where(near, weight, 0.0)))
    places, weights = (concat(list(part), 2) for part in zip(*taps, strict=True))
    return places, weights / number if mean else weights


def _column(vector: Any) -> Any:
    return reshape(vector, (-1, 1))


def _most(count: Any) -> int:
    """Return the maximum of ``count``, at least 1, read on the host."""
    return 1 if count.shape[0] == 0 else max(int(largest(count).item()), 1)


def _beside(taps: Any, axis: int) -> Any:
    """Return taps [R, bins, K] of one axis as [R, bins, 1, K, 1] or [R, 1, bins, 1,
    K].
    """
    regions, bins, count = taps.shape
    shape = (bins, 1, count, 1) if axis == 0 else (1, bins, 1, count)
    return reshape(taps, (regions, *shape))


def _taps(values: Any) -> Any:
    """Return [R, height, width, K, L] as one image's taps [1, K L, R height width]."""
    regions, height, width, *taps = values.shape
    flat = reshape(values, (1, regions * height * width, prod(taps)))
    return transpose(flat, 1, 2)


def _as_one(x: Any) -> Any:
    """Return a batch [N, C, H, W] as the elements [1, C, N H W]."""
    batch, channels, height, width = x.shape
    return reshape(permute(x, (1, 0, 2, 3)), (1, channels, batch * height * width))


def _regions(out: Any, shape: tuple[int, ...]) -> Tensor:
    """Return [1, C, R height width] as ``shape``, [R, C, height, width]."""
    regions, channels, *space = shape
    return transpose(reshape(out, (channels, regions, *space)), 0, 1)


@composite
def max_roi_pool(
    x: Array, rois: Array, *, output_size: tuple[int, ...], spatial_scale: float = 1.0
) -> Tensor:
    """Return the maximum in each bin of each region of ``x`` [N, C, H, W].

    ``rois`` are [R, 5]: the image, then x1, y1, x2, y2 in units of ``1 /
    spatial_scale`` elements, both ends included and rounded to whole elements. The
    result is [R, C, *output_size], with 0 in bins without elements.
    """
    _, channels, height, width = x.shape
    wide = dtypes.float32 if rois.dtype in dtypes.HALVES else rois.dtype
    corners = cast(rois, dtype=wide)
    image = reshape(cast(getitem(corners, (slice(None), 0)), dtype=dtypes.int64), -1)
    ends = getitem(corners, (slice(None), slice(1, None))) * spatial_scale
    ends = sign(ends) * floor(abs(ends) + 0.5)  # halves away from zero
    along = []
    for axis, (extent, bins) in enumerate(
        zip((height, width), output_size, strict=True)
    ):
        start = getitem(ends, (slice(None), 1 - axis))
        stop = getitem(ends, (slice(None), 3 - axis))
        along.append(_beside(_cells(start, stop, bins, extent), axis))
    rows, columns = along
    index = (reshape(image, (-1, 1, 1, 1, 1)) * height + rows) * width + columns
    index = where(logical_and(rows >= 0, columns >= 0), index, -1)
    out = gather_max(_as_one(x), _taps(index))
    return _regions(out, (len(index), channels, *output_size))


def _cells(start: Any, stop: Any, bins: int, extent: int) -> Any:
    """Return the element indices [R, bins, K] of bins along an axis; negative: none."""
    size = maximum(stop - start + 1.0, 1.0) / bins
    number = arange(bins, dtype=start.dtype)
    first = floor(_column(size) * number) + _column(start)
    last = ceil(_column(size) * (number + 1.0)) + _column(start)
    first, last = (
        cast(clip(end, 0.0, float(extent)), dtype=dtypes.int64) for end in (first, last)
    )
    count = last - first
    most = max(int(largest(count).item()), 1) if count.shape[0] else 1
    step = arange(most)
    position = unsqueeze(first, 2) + step
    return where(step < unsqueeze(count, 2), position, -1)
