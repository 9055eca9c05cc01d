"""Reductions over axes: sums, means and extremes."""

import builtins
from math import prod
from typing import Any

import numpy as np

from burn import dtypes
from burn.ops import bounds, elementwise
from burn.ops.broadcast import expand
from burn.ops.casting import cast
from burn.ops.logic import where
from burn.ops.shape import reshape
from burn.ops.support import Array, Axes, accumulate, axes_of, contract, namespace
from burn.primitive import composite, primitive
from burn.tensor import Tensor


@primitive(traceable=True, no_gradient="axes are integers")
def axes_or_all(axes: Array, x: Array) -> Array:
    """Return ``axes``, or every axis of ``x`` if there are none."""
    return axes if axes.size else namespace(axes).arange(x.ndim)


#: How many blocks of rows are added in a sequence; longer sequences are split.
BLOCK = 32


def _total(x: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
    """Return the sum over ``axes``; many rows are added in blocks, and these again.

    NumPy adds pairwise along the innermost axis of memory only. Along others it adds
    row after row, with a rounding error that grows with the number of rows.
    """
    axis = _row_axis(x, axes)
    if axis is None:
        return np.sum(x, axis=axes, keepdims=keepdims, dtype=None)
    if x.shape[axis] < 2 * BLOCK:
        return _total(np.sum(x, axis=axis, keepdims=True), axes, keepdims)
    blocks, rest = _blocks(x, axis)
    total = _total(np.sum(blocks, axis=axis), axes, keepdims)
    if rest.size:
        total = total + np.sum(rest, axis=axes, keepdims=keepdims)
    return total


def _blocks(x: Array, axis: int) -> tuple[Array, Array]:
    """Return ``x`` with ``axis`` in blocks [BLOCK, blocks], and the remaining rows."""
    end = x.shape[axis] - x.shape[axis] % BLOCK
    key = (slice(None),) * axis
    shape = (*x.shape[:axis], BLOCK, -1, *x.shape[axis + 1 :])
    return x[(*key, slice(None, end))].reshape(shape), x[(*key, slice(end, None))]


def total_product(x: Array, y: Array, axes: tuple[int, ...]) -> Array:
    """Return the sum of ``x * y``, of one shape, over ``axes``, which are kept.

    Many rows are added in blocks, as in :func:`sum`.
    """
    axis = _row_axis(x, axes)
    if axis is None:
        every = list(range(x.ndim))
        left = [a for a in every if a not in axes]
        return np.expand_dims(contract(x, every, y, every, left), axes)
    if x.shape[axis] < 2 * BLOCK:
        return _total(total_product(x, y, (axis,)), axes, True)
    (blocks, rest), (others, other) = _blocks(x, axis), _blocks(y, axis)
    every = list(range(x.ndim + 1))
    left = [a for a in every if a != axis]
    total = _total(contract(blocks, every, others, every, left), axes, True)
    return total + total_product(rest, other, axes) if rest.size else total


def _row_axis(x: Array, axes: tuple[int, ...]) -> int | None:
    """Return the longest of ``axes`` if NumPy would add many rows in a sequence."""
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "fc" or not x.size:
        return None
    long = [a for a in range(x.ndim) if x.shape[a] > 1]
    innermost = builtins.min(long, key=lambda a: builtins.abs(x.strides[a]), default=0)
    if innermost in axes:
        return None
    if prod(x.shape[a] for a in axes) < 2 * BLOCK:
        return None
    return builtins.max(axes, key=lambda a: x.shape[a])


@primitive(traceable=True, removable=True, bound=bounds.total, numpy_time=1.0)
def sum(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Return the sum over ``axis``, or over all axes; bools are counted in int64."""
    if x.dtype == dtypes.bool_:
        x = x.astype(np.int64)
    total = _total(accumulate(x), axes_of(axis, x.ndim), keepdims)
    return total.astype(x.dtype, copy=False)


@sum.vjp
def _(grad: Any, out: Any, x: Any, axis: Axes = None, *, keepdims: bool = False) -> Any:
    return lambda: spread(grad, x, axis, keepdims)


sum.declare_reads()


@primitive(traceable=True, removable=True, bound=bounds.of_first, numpy_time=5.0)
def mean(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Return the mean over ``axis``, or over all axes, in the dtype of ``x``."""
    axes = axes_of(axis, x.ndim)
    if dtypes.is_integer(x.dtype):
        count = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
        total = np.sum(x, axis=axes, keepdims=keepdims)
        return np.trunc(total / count).astype(x.dtype)
    terms = accumulate(x)
    if not x.size:  # NumPy's mean warns of it
        average = np.sum(terms, axis=axes, keepdims=keepdims) * np.nan
    elif _row_axis(terms, axes) is None:
        average = np.mean(terms, axis=axes, keepdims=keepdims)
    else:
        total = _total(terms, axes, keepdims)
        average = total / terms.dtype.type(x.size // total.size)
    return average.astype(x.dtype, copy=False)


@mean.vjp
def _(grad: Any, out: Any, x: Any, axis: Axes = None, *, keepdims: bool = False) -> Any:
    count = 1
    for a in axes_of(axis, x.ndim):
        count *= x.shape[a]
    return lambda: spread(grad / builtins.max(count, 1), x, axis, keepdims)


mean.declare_reads()


@primitive(traceable=True, removable=True, bound=bounds.of_first)
def max(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Return the maximum over ``axis``; the lowest value of the dtype if empty."""
    return _extreme(np.max, x, axis, keepdims, lowest(x.dtype))


@max.vjp
def _(grad: Any, out: Any, x: Any, axis: Axes = None, *, keepdims: bool = False) -> Any:
    return lambda: _to_extremes(grad, out, x, axis, keepdims)


@primitive(traceable=True, removable=True, bound=bounds.of_first)
def min(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Return the minimum over ``axis``; the highest value of the dtype if empty."""
    return _extreme(np.min, x, axis, keepdims, highest(x.dtype))


@min.vjp
def _(grad: Any, out: Any, x: Any, axis: Axes = None, *, keepdims: bool = False) -> Any:
    return lambda: _to_extremes(grad, out, x, axis, keepdims)


def _extreme(pick: Any, x: Array, axis: Axes, keepdims: bool, identity: Any) -> Array:
    axes = axes_of(axis, x.ndim)
    if builtins.all(x.shape[a] for a in axes):
        return pick(x, axis=axes, keepdims=keepdims)
    shape = [1 if a in axes else n for a, n in enumerate(x.shape)]
    full = np.full_like(x, identity, shape=shape)
    return (
        full
        if keepdims
        else full.reshape([n for a, n in enumerate(shape) if a not in axes])
    )


def lowest(dtype: Any) -> Any:
    """Return the lowest value of ``dtype``: minus infinity, least integer or False."""
    return _bound(dtype, -np.inf, "min")


def highest(dtype: Any) -> Any:
    """Return the highest value of ``dtype``: infinity, the greatest integer, True."""
    return _bound(dtype, np.inf, "max")


def _bound(dtype: Any, infinity: float, side: str) -> Any:
    if dtype == dtypes.bool_:
        return side == "max"
    if dtypes.is_float(dtype):
        return infinity
    return getattr(dtypes.integer_limits(dtype), side)


def spread(grad: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    """Return ``grad`` of a reduction, broadcast back over the reduced axes."""
    if not keepdims:
        axes = axes_of(axis, x.ndim)
        shape = tuple(1 if a in axes else n for a, n in enumerate(x.shape))
        grad = reshape(grad, shape)
    return expand(grad, x.shape)


def _to_extremes(grad: Any, out: Any, x: Any, axis: Axes, keepdims: bool) -> Any:
    """Return ``grad`` divided equally among the elements that attain the extreme."""
    hit = cast(x == spread(out, x, axis, keepdims), dtype=x.dtype)
    share = hit / sum(hit, axis, keepdims=True)
    return spread(grad, x, axis, keepdims) * share


@primitive(traceable=True, no_gradient="the result is a bool")
def any(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Return whether any element over ``axis``, or over all axes, is nonzero."""
    return np.any(x, axis=axes_of(axis, x.ndim), keepdims=keepdims)


@primitive(traceable=True, no_gradient="the result is a bool")
def all(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Return whether all elements over ``axis``, or over all axes, are nonzero."""
    return np.all(x, axis=axes_of(axis, x.ndim), keepdims=keepdims)


@composite(outputs=1)
def var(
    x: Array, axis: Axes = None, *, correction: float = 1, keepdims: bool = False
) -> Any:
    """Return the variance over ``axis``: the sum of squares over count -
    ``correction``, or over 0 if that is negative: NaN, as in PyTorch.
    """
    count = 1
    for a in axes_of(axis, x.ndim):
        count *= x.shape[a]
    deviation = x - mean(x, axis, keepdims=True)
    total = sum(deviation * deviation, axis, keepdims=keepdims)
    removed = count - correction
    return total / (removed if removed > 0 else 0)


@composite(outputs=1)
def std(
    x: Array, axis: Axes = None, *, correction: float = 1, keepdims: bool = False
) -> Any:
    """Return the square root of :func:`var`; the gradient of equal elements is 0."""
    return root(var(x, axis, correction=correction, keepdims=keepdims), 2)


@composite(outputs=1)
def reduce_l1(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Any:
    """Return the sum of absolute values over ``axis``, or over all axes."""
    return sum(elementwise.abs(x), axis, keepdims=keepdims)


@composite(outputs=1)
def reduce_l2(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Any:
    """Return the Euclidean norm over ``axis``, or over all axes."""
    return root(sum(x * x, axis, keepdims=keepdims), 2)


def root(total: Any, p: float) -> Tensor:
    """Return the ``p``-th root of a sum of powers; the gradient at 0 is 0."""
    nothing = total == 0
    safe = where(nothing, 1, total)
    result = elementwise.sqrt(safe) if p == 2 else elementwise.pow(safe, 1.0 / p)
    return where(nothing, 0, result)
