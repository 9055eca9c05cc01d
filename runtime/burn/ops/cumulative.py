"""Cumulative sums and products, and products over axes."""

from typing import Any

import numpy as np

from burn import dtypes
from burn.ops.elementwise import exp, log
from burn.ops.logic import logical_and, where
from burn.ops.padding import pad
from burn.ops.reduction import spread
from burn.ops.shape import permute, reshape
from burn.ops.support import Array, Axes, accumulate, axes_of, integers, namespace
from burn.primitive import primitive


@primitive(traceable=True)
def prod(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Return the product over ``axis``, or over all axes, in the dtype of ``x``."""
    axes = axes_of(axis, x.ndim)
    return np.prod(accumulate(x), axis=axes, keepdims=keepdims).astype(x.dtype)


@prod.vjp
def _(grad: Any, out: Any, x: Any, axis: Axes = None, *, keepdims: bool = False) -> Any:
    return lambda: spread(grad, x, axis, keepdims) * _products_of_others(x, axis)


def _products_of_others(x: Any, axis: Axes) -> Any:
    """Return for every element the product of the others in its reduction.

    Computed from prefix and suffix products, since division fails at zero.
    """
    axes = axes_of(axis, x.ndim)
    others = tuple(a for a in range(x.ndim) if a not in axes)
    order = (*others, *axes)
    turned = permute(x, order)
    extents = turned.shape
    count = 1
    for a in axes:
        count *= x.shape[a]
    rows = reshape(turned, (*(x.shape[a] for a in others), count))
    before = cumprod(rows, -1, exclusive=True)
    after = cumprod(rows, -1, exclusive=True, reverse=True)
    inverse = tuple(order.index(a) for a in range(x.ndim))
    return permute(reshape(before * after, extents), inverse)


@primitive(traceable=True)
def cumsum(
    x: Array, axis: Any = 0, *, exclusive: bool = False, reverse: bool = False
) -> Array:
    """Return the cumulative sum along ``axis``, in the dtype of ``x``.

    ``exclusive`` excludes the element itself; ``reverse`` starts at the end.
    """
    return _running(np.cumsum, x, axis, exclusive, reverse, 0)


@cumsum.vjp_reading()
def _(
    grad: Any, out: Any, x: Any, axis: Any = 0, *, reverse: bool = False, **static: Any
) -> Any:
    return lambda: cumsum(grad, axis, reverse=not reverse, **static)


@primitive(traceable=True)
def cumprod(
    x: Array, axis: Any = 0, *, exclusive: bool = False, reverse: bool = False
) -> Array:
    """Return the cumulative product along ``axis``, in the dtype of ``x``.

    ``exclusive`` excludes the element itself; ``reverse`` starts at the end.
    """
    return _running(np.cumprod, x, axis, exclusive, reverse, 1)


@cumprod.vjp
def _(
    grad: Any,
    out: Any,
    x: Any,
    axis: Any = 0,
    *,
    exclusive: bool = False,
    reverse: bool = False,
) -> Any:
    (along,) = integers(axis)

    def share() -> Any:
        # d out[j] / d x[i] = (product before i) * (product between i and j): no
        # division, so zeros are right.
        before = cumprod(x, along, exclusive=True, reverse=reverse)
        weight = _shift(grad, along, reverse) if exclusive else grad
        factors = _shift(x, along, reverse)
        return before * recurrence(factors, weight, axis=along, reverse=not reverse)

    return share


def _shift(x: Any, axis: int, reverse: bool) -> Any:
    """Return ``x`` shifted by one to the start (end if ``reverse``) along ``axis``."""
    pads = (1, -1) if reverse else (-1, 1)
    return pad(x, pads, 0, axis)


@primitive(infallible=True)
def logcumsumexp(x: Array, axis: int = 0, *, reverse: bool = False) -> Array:
    """Return the logarithm of the cumulative sum of exponentials along ``axis``.

    It is stable against overflow and underflow. ``reverse`` starts at the end.
    """
    work = np.moveaxis(accumulate(x), axis, -1)
    work = work[..., ::-1] if reverse else work
    step = 1
    while step < work.shape[-1]:
        joined = np.logaddexp(work[..., step:], work[..., :-step])
        work = np.concatenate([work[..., :step], joined], axis=-1)
        step *= 2
    work = work[..., ::-1] if reverse else work
    return np.moveaxis(work, -1, axis).astype(x.dtype)


@logcumsumexp.vjp
def _(grad: Any, out: Any, x: Any, axis: Any = 0, *, reverse: bool = False) -> Any:
    """Return the gradient; positive and negative parts are summed as logarithms."""

    def share() -> Any:
        return half(grad) - half(-grad)

    def half(part: Any) -> Any:
        counts = logical_and(part > 0, out > -np.inf)
        level = log(where(counts, part, 1.0)) - where(counts, out, 0.0)
        level = where(counts, level, -np.inf)
        return exp(logcumsumexp(level, axis, reverse=not reverse) + x)

    return share


@primitive
def recurrence(
    factors: Array, terms: Array, *, axis: int, reverse: bool = False
) -> Array:
    """Return the recurrence ``s[i] = terms[i] + factors[i] * s[i - 1]`` from zero.

    ``reverse`` starts at the end: ``s[i] = terms[i] + factors[i] * s[i + 1]``.
    """
    xp = namespace(terms)
    a, b = xp.moveaxis(accumulate(factors), axis, 0), xp.moveaxis(terms, axis, 0)
    out = xp.empty(b.shape, a.dtype)
    steps = range(len(b))
    state: Any = 0
    for i in reversed(steps) if reverse else steps:
        state = out[i] = b[i] + a[i] * state
    return xp.moveaxis(out, 0, axis).astype(terms.dtype, copy=False)


@recurrence.vjp
def _(
    grad: Any, out: Any, factors: Any, terms: Any, *, axis: int, reverse: bool = False
) -> Any:
    def to_terms() -> Any:
        after = _shift(factors, axis, reverse)
        return recurrence(after, grad, axis=axis, reverse=not reverse)

    return lambda: to_terms() * _shift(out, axis, not reverse), to_terms


def _running(
    accumulator: Any, x: Array, axis: Any, exclusive: bool, reverse: bool, identity: int
) -> Array:
    (along,) = integers(axis)
    work = accumulate(x)
    dtype = work.dtype if work.dtype != dtypes.bool_ else dtypes.int64
    if reverse:
        work = np.flip(work, along)
    if exclusive:
        work = _delayed(work, along, identity)
    total = accumulator(work, axis=along, dtype=dtype)
    if reverse:
        total = np.flip(total, along)
    return total.astype(x.dtype, copy=False)


def _delayed(x: Array, axis: int, first: int) -> Array:
    """Return ``x`` shifted by one along ``axis``, after ``first``."""
    rows = np.moveaxis(x, axis, 0)
    out = np.full_like(rows, first)
    out[1:] = rows[:-1]
    return np.moveaxis(out, 0, axis)
