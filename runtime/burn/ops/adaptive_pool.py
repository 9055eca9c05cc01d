"""Adaptive max pooling: maxima of a given number of windows of each spatial axis."""

from typing import Any

import numpy as np

from burn.ops.creation import arange
from burn.ops.indexing import take
from burn.ops.ordering import argmax
from burn.ops.pool import max_pool, max_pool_with_indices, window_bounds
from burn.ops.scatter import gather_elements
from burn.ops.shape import reshape, squeeze
from burn.ops.support import Array
from burn.ops.window import Extents, per_axis
from burn.primitive import composite


@composite(outputs=1)
def adaptive_max_pool(x: Array, *, output_size: Extents) -> Any:
    """Return the maxima of ``output_size`` windows that cover each spatial axis evenly.

    ``x`` is [N, C, *size]. Windows are those of :func:`adaptive_avg_pool`. The gradient
    of a window goes to the first of equal maxima.
    """
    sizes = per_axis(output_size, x.ndim - 2, "output_size")
    kernel = _separate_windows(x.shape[2:], sizes)
    if kernel:
        return max_pool(x, kernel_size=kernel, stride=kernel)
    for axis, size in reversed(list(enumerate(sizes, 2))):
        x, _ = _axis_maxima(x, axis, size)
    return x


@composite(outputs=2)
def adaptive_max_pool_with_indices(x: Array, *, output_size: Extents) -> Any:
    """Return :func:`adaptive_max_pool`, and the index of each maximum.

    The indices are int64 and count the spatial axes of ``x`` as one, row by row; of
    equal elements the first is taken.
    """
    sizes = per_axis(output_size, x.ndim - 2, "output_size")
    kernel = _separate_windows(x.shape[2:], sizes)
    if kernel:
        return max_pool_with_indices(x, kernel_size=kernel, stride=kernel)
    places, stride = None, 1
    # The last axis is reduced first: of equal maxima the first in memory is taken.
    for axis, size in reversed(list(enumerate(sizes, 2))):
        extent = x.shape[axis]
        x, nearest = _axis_maxima(x, axis, size)
        starts = reshape(arange(size) * extent // size, (size, *[1] * (x.ndim - axis)))
        own = squeeze((nearest + starts) * stride, axis=axis + 1)
        if places is not None:
            behind = take(places, _window_indices(extent, size), axis=axis)
            own = own + squeeze(gather_elements(behind, nearest, axis + 1), axis + 1)
        places, stride = own, stride * extent
    return x, places


def _axis_maxima(x: Any, axis: int, size: int) -> tuple[Any, Any]:
    """Return the maxima of the windows of one axis, and where each window has it."""
    windows = take(x, _window_indices(x.shape[axis], size), axis=axis)
    nearest = argmax(windows, axis + 1, keepdims=True)
    return squeeze(gather_elements(windows, nearest, axis + 1), axis + 1), nearest


def _separate_windows(
    extents: tuple[int, ...], sizes: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the kernel of windows that do not overlap, () if they do."""
    if any(n < size or n % size for n, size in zip(extents, sizes, strict=True)):
        return ()
    return tuple(n // size for n, size in zip(extents, sizes, strict=True))


def _window_indices(extent: int, count: int) -> Any:
    """Return the indices [count, longest window]; short windows repeat their last."""
    starts, stops = window_bounds(extent, count)
    elements = starts[:, None] + np.arange((stops - starts).max(initial=1))
    return np.minimum(elements, stops[:, None] - 1).tolist()
