"""Pooling: a maximum, mean or norm over windows of the spatial axes.

The kernels loop over the taps of a window, so that they keep the memory order of the
axes of their operand.
"""

from collections.abc import Callable
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from burn import dtypes
from burn.ops import bounds
from burn.ops.elementwise import abs, div, pow
from burn.ops.reduction import lowest, root
from burn.ops.support import Array, accumulate, as_array, namespace, projected
from burn.ops.window import Extents, Padding, Windows, per_axis, windows
from burn.primitive import composite, primitive
from burn.tensor import Tensor


@primitive(removable=True, bound=bounds.of_first, numpy_time=5.0)
def max_pool(
    x: Array,
    *,
    kernel_size: Extents,
    stride: Extents = 1,
    padding: Padding = 0,
    dilation: Extents = 1,
    ceil_mode: bool = False,
) -> Array:
    """Return the maximum of each window over the spatial axes of ``x`` [N, C, *size].

    With ``ceil_mode`` a last window may reach beyond the padding, but not start there.
    """
    wins = windows(x.shape[2:], kernel_size, stride, padding, dilation, ceil_mode)
    wins = wins.trimmed
    return _largest(_covered(x, wins), wins)


@max_pool.vjp_reading({0: (0,)}, results=(0,))
def _(grad: Any, out: Any, x: Any, **static: Any) -> Any:
    return lambda: _to_largest(grad, out, x, static)


@primitive(outputs=2, removable=True)
def max_pool_with_indices(
    x: Array,
    *,
    kernel_size: Extents,
    stride: Extents = 1,
    padding: Padding = 0,
    dilation: Extents = 1,
    ceil_mode: bool = False,
) -> tuple[Array, Array]:
    """Return :func:`max_pool`, and the index of each maximum.

    The indices are int64 and count the spatial axes of ``x`` as one, row by row; of
    equal elements the first is taken.
    """
    wins = windows(x.shape[2:], kernel_size, stride, padding, dilation, ceil_mode)
    wins = wins.trimmed
    covered = _covered(x, wins)
    out = _largest(covered, wins)
    return out, _flat(_first_hit(covered, out, wins), wins)


@max_pool_with_indices.vjp_reading({0: (0,)}, results=(0,))
def _(grad: Any, out: Any, x: Any, **static: Any) -> Any:
    return lambda: _to_largest(grad[0], out[0], x, static)


def _to_largest(grad: Any, out: Any, x: Any, static: dict[str, Any]) -> Any:
    choice = window_argmax(x, out, **static)
    return window_scatter(grad, choice, size=x.shape[2:], **static)


@primitive(removable=True, no_gradient="the result is an index")
def window_argmax(
    x: Array, out: Array, *, kernel_size: Extents, **static: Any
) -> Array:
    """Return the first tap, row by row, of each window of ``x`` that equals ``out``."""
    wins = windows(x.shape[2:], kernel_size, **static).trimmed
    return _first_hit(_covered(x, wins), out, wins)


@primitive(removable=True)
def window_scatter(
    grad: Array,
    choice: Array,
    *,
    size: tuple[int, ...],
    kernel_size: Extents,
    **static: Any,
) -> Array:
    """Return zeros [N, C, *size] with ``grad`` added at the chosen tap of each window.

    The adjoint of :func:`window_gather`.
    """
    wins = windows(size, kernel_size, **static).trimmed
    return _add_to_windows(
        grad, wins, lambda term, number: np.where(choice == number, term, 0)
    )


@window_scatter.vjp
def _(grad: Any, out: Any, outer: Any, choice: Any, *, size: Any, **static: Any) -> Any:
    return lambda: window_gather(grad, choice, **static), None


@primitive(removable=True)
def window_gather(
    x: Array, choice: Array, *, kernel_size: Extents, **static: Any
) -> Array:
    """Return the element at tap ``choice`` of each window of ``x`` [N, C, *size]."""
    wins = windows(x.shape[2:], kernel_size, **static).trimmed
    covered = wins.cover(x, 2, 0)
    out = np.zeros_like(x, shape=choice.shape)
    for number, (_, keys) in enumerate(wins.places()):
        out = np.where(choice == number, covered[(..., *keys)], out)
    return out


@window_gather.vjp
def _(grad: Any, out: Any, x: Any, choice: Any, **static: Any) -> Any:
    return lambda: window_scatter(grad, choice, size=x.shape[2:], **static), None


@primitive(removable=True, bound=bounds.of_first, numpy_time=5.0)
def avg_pool(
    x: Array,
    *,
    kernel_size: Extents,
    stride: Extents = 1,
    padding: Padding = 0,
    dilation: Extents = 1,
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Array:
    """Return the mean of each window over the spatial axes of ``x`` [N, C, *size].

    Padding is counted only with ``count_include_pad``; elements beyond the padding,
    which ``ceil_mode`` allows, are never counted.
    """
    wins = windows(x.shape[2:], kernel_size, stride, padding, dilation, ceil_mode)
    total = _total(accumulate(x), wins.trimmed)
    count = as_array(x, _counts(wins, count_include_pad).astype(total.dtype))
    np.divide(total, count, out=total)
    return total.astype(x.dtype, copy=False)


@avg_pool.vjp_reading()
def _(
    grad: Any, out: Any, x: Any, *, count_include_pad: bool = False, **static: Any
) -> Any:
    wins = windows(x.shape[2:], static.pop("kernel_size"), **static)
    count = _counts(wins, count_include_pad).astype(grad.dtype)
    wins = wins.trimmed
    return lambda: window_spread(
        div(grad, count),
        size=wins.size,
        kernel_size=wins.kernel,
        stride=wins.stride,
        padding=wins.exact,
        dilation=wins.dilation,
    )


@primitive(removable=True)
def window_sum(
    x: Array,
    *,
    kernel_size: Extents,
    stride: Extents = 1,
    padding: Padding = 0,
    dilation: Extents = 1,
    ceil_mode: bool = False,
) -> Array:
    """Return the sum of each window over the spatial axes of ``x`` [N, C, *size]."""
    wins = windows(x.shape[2:], kernel_size, stride, padding, dilation, ceil_mode)
    return _total(accumulate(x), wins.trimmed).astype(x.dtype, copy=False)


@window_sum.vjp_reading()
def _(grad: Any, out: Any, x: Any, **static: Any) -> Any:
    return lambda: window_spread(grad, size=x.shape[2:], **static)


@primitive(removable=True)
def window_spread(
    grad: Array, *, size: tuple[int, ...], kernel_size: Extents, **static: Any
) -> Array:
    """Return zeros [N, C, *size] with ``grad`` added to all elements of its window.

    The adjoint of :func:`window_sum`.
    """
    wins = windows(size, kernel_size, **static).trimmed
    return _add_to_windows(grad, wins, lambda term, _: term)


@window_spread.vjp
def _(grad: Any, out: Any, outer: Any, *, size: Any, **static: Any) -> Any:
    return lambda: window_sum(grad, **static)


@composite
def lp_pool(
    x: Array,
    *,
    kernel_size: Extents,
    p: float = 2.0,
    stride: Extents = 1,
    padding: Padding = 0,
    dilation: Extents = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """Return the ``p``-norm of each window over the spatial axes [N, C, *size]."""
    total = window_sum(
        pow(abs(x), p),
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
    )
    return root(total, p)


@primitive(removable=True)
def adaptive_avg_pool(x: Array, *, output_size: Extents) -> Array:
    """Return the means of ``output_size`` windows that cover each spatial axis evenly.

    Window ``i`` of ``n`` over an extent is ``[floor(i * extent / n),
    ceil((i + 1) * extent / n))``; neighbors may overlap.
    """
    out = accumulate(x)
    sizes = per_axis(output_size, x.ndim - 2, "output_size")
    for axis, count in enumerate(sizes, 2):
        out = _along(_means(out.shape[axis], count), out, axis)
    return out.astype(x.dtype, copy=False)


@adaptive_avg_pool.vjp_reading()
def _(grad: Any, out: Any, x: Any, *, output_size: Extents) -> Any:
    return lambda: adaptive_avg_spread(grad, size=x.shape[2:])


@primitive(removable=True)
def adaptive_avg_spread(grad: Array, *, size: tuple[int, ...]) -> Array:
    """Return the adjoint of :func:`adaptive_avg_pool` for input extents ``size``."""
    out = accumulate(grad)
    for axis, extent in enumerate(size, 2):
        out = _along(_means(extent, out.shape[axis]).T, out, axis)
    return out.astype(grad.dtype, copy=False)


@adaptive_avg_spread.vjp
def _(grad: Any, out: Any, outer: Any, *, size: tuple[int, ...]) -> Any:
    return lambda: adaptive_avg_pool(grad, output_size=outer.shape[2:])


def _add_to_windows(
    grad: Array, wins: Windows, share: Callable[[Array, int], Array]
) -> Array:
    """Return zeros of the extents before pooling, plus ``share(grad, tap)`` by tap."""
    term = accumulate(grad)
    covered, inside = wins.uncover(term, 2)
    for number, (_, keys) in enumerate(wins.places()):
        covered[(..., *keys)] += share(term, number)
    return inside.astype(grad.dtype, copy=False)


def _covered(x: Array, wins: Windows) -> Array:
    return wins.cover(x, 2, lowest(x.dtype))


def _largest(covered: Array, wins: Windows) -> Array:
    views = [covered[(..., *keys)] for _, keys in wins.places()]
    if len(views) == 1:
        return views[0].copy(order="K")
    out = np.maximum(views[0], views[1])
    for view in views[2:]:
        np.maximum(out, view, out=out)
    return out


def _first_hit(covered: Array, out: Array, wins: Windows) -> Array:
    dtype = np.uint8 if wins.taps <= 256 else np.int32
    choice = np.zeros_like(out, dtype=dtype)
    for number, (_, keys) in reversed(list(enumerate(wins.places()))):
        hit = covered[(..., *keys)] == out
        choice = np.where(hit, choice.dtype.type(number), choice)
    return choice


def _flat(choice: Array, wins: Windows) -> Array:
    """Return the taps ``choice`` of the windows as indices into the flat input."""
    rank = len(wins.size)
    space = namespace(choice)
    flat: Any = space.zeros((1,) * rank, np.int64)
    for axis in range(rank):
        inner = prod(wins.kernel[axis + 1 :])
        tap = (choice // inner % wins.kernel[axis]).astype(np.int64)
        starts = space.arange(wins.count[axis]) * wins.stride[axis]
        starts = (starts - wins.pads[axis][0]).reshape(-1, *(1,) * (rank - axis - 1))
        flat = flat * wins.size[axis] + starts + tap * wins.dilation[axis]
    return flat


def _total(x: Array, wins: Windows) -> Array:
    """Return the sum of each window, in new memory."""
    covered = wins.cover(x, 2, 0)
    views = [covered[(..., *keys)] for _, keys in wins.places()]
    out = views[0].copy(order="K")
    for view in views[1:]:
        out += view
    return out


def _counts(wins: Windows, include_pad: bool) -> np.ndarray[Any, Any]:
    """Return the number of counted elements of each window."""
    counts = []
    for axis, size in enumerate(wins.size):
        before, after = wins.pads[axis]
        starts = np.arange(wins.count[axis]) * wins.stride[axis] - before
        places = starts[:, None] + np.arange(wins.kernel[axis]) * wins.dilation[axis]
        low, high = (-before, size + after) if include_pad else (0, size)
        counts.append(((places >= low) & (places < high)).sum(1))
    counted: np.ndarray[Any, Any] = reduce(np.multiply.outer, counts)
    return counted.clip(1)


def window_bounds(
    extent: int, count: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return where ``count`` windows start and end that cover an axis evenly."""
    index = np.arange(count)
    return index * extent // count, -(-(index + 1) * extent // count)


def _means(extent: int, count: int) -> np.ndarray[Any, Any]:
    """Return the matrix [count, extent] that computes means of even windows."""
    starts, stops = window_bounds(extent, count)
    element = np.arange(extent)
    inside = (element >= starts[:, None]) & (element < stops[:, None])
    means: np.ndarray[Any, Any] = np.divide(inside, inside.sum(1, keepdims=True))
    return means


def _along(matrix: np.ndarray[Any, Any], x: Array, axis: int) -> Array:
    """Return ``matrix`` applied along one axis of ``x``."""
    if not dtypes.is_float(x.dtype):
        raise TypeError(f"expected a float dtype, got {x.dtype}")
    return projected(x, matrix, axis)
