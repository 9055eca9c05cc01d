"""Sorting, the largest and smallest elements, and running sums and products."""

import builtins
from typing import Any

import numpy as np

from burn import dtypes
from burn.ops.creation import zeros_like
from burn.ops.elementwise import cast
from burn.ops.indexing import gather_elements, one_hot_mask
from burn.ops.padding import pad
from burn.ops.scatter import scatter_elements
from burn.ops.support import Array, accumulate, integers, namespace
from burn.primitive import composite, primitive


@primitive(outputs=2)
def topk(
    x: Array, k: Any, *, axis: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Array, Array]:
    """The ``k`` largest (or smallest) elements along ``axis``, and their int64 indices.

    The best comes first, whether ``sorted`` is asked or not; of equal elements the one
    with the lowest index.

    Raises:
        ValueError: there are fewer than ``k``.
    """
    (count,) = integers(k)
    if not 0 <= count <= x.shape[axis]:
        raise ValueError(f"expected k in [0, {x.shape[axis]}], got {count}")
    key = [builtins.slice(None)] * x.ndim
    key[axis] = builtins.slice(0, count)
    order = _order(x, axis, largest)[tuple(key)]
    return namespace(x).take_along_axis(x, order, axis=axis), order


@topk.vjp
def _(
    grad: Any,
    out: Any,
    x: Any,
    k: Any,
    *,
    axis: int = -1,
    largest: bool = True,
    sorted: bool = True,
) -> Any:
    return lambda: scatter_elements(
        zeros_like(x), out[1], grad[0], axis=axis, reduction="add"
    )


def _order(x: Array, axis: int, descending: bool) -> Array:
    """The stable order of ``x`` along ``axis``, as int64."""
    work = accumulate(x)
    if not descending:
        return np.argsort(work, axis=axis, kind="stable").astype(np.int64, copy=False)
    # Turned round twice: equal elements keep their order and nothing is negated.
    order = np.argsort(np.flip(work, axis), axis=axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(order, axis).astype(np.int64, copy=False)


@primitive
def argsort(x: Array, axis: int = -1, *, descending: bool = False) -> Array:
    """The int64 indices that sort ``x`` along ``axis``, stably."""
    return _order(x, axis, descending)


argsort.no_gradient("the result are integers")


@composite
def sort(x: Array, axis: int = -1, *, descending: bool = False) -> Any:
    """``x`` sorted along ``axis``."""
    return gather_elements(x, argsort(x, axis, descending=descending), axis)


@primitive
def argmax(
    x: Array,
    axis: int | None = None,
    *,
    keepdims: bool = False,
    select_last: bool = False,
) -> Array:
    """The int64 index of the largest element along ``axis``, or of ``x`` flattened.

    Of equal elements the first, or with ``select_last`` the last.
    """
    return _position("argmax", x, axis, keepdims, select_last)


@primitive
def argmin(
    x: Array,
    axis: int | None = None,
    *,
    keepdims: bool = False,
    select_last: bool = False,
) -> Array:
    """The int64 index of the smallest element along ``axis``, or of ``x`` flattened.

    Of equal elements the first, or with ``select_last`` the last.
    """
    return _position("argmin", x, axis, keepdims, select_last)


argmax.no_gradient("the result are integers")
argmin.no_gradient("the result are integers")


@composite(outputs=1)
def hardmax(x: Array, *, axis: int = -1) -> Any:
    """1 at the largest element along ``axis``, the first of equal ones, else 0.

    The result has the dtype of ``x``.
    """
    if 0 in x.shape:
        return zeros_like(x)
    mask = one_hot_mask(argmax(x, axis), x.shape[axis], axis=axis)
    return cast(mask, dtype=x.dtype)


def _position(
    name: str, x: Array, axis: int | None, keepdims: bool, select_last: bool
) -> Array:
    find = getattr(namespace(x), name)
    work = accumulate(x)
    rank = x.ndim
    if axis is None:
        work, along = work.reshape(-1), 0
    else:
        along = axis
    rest = np.delete(work.shape, along)
    if not np.prod(rest):  # NumPy refuses an empty axis also where nothing is asked
        position = np.zeros(rest)
    elif not work.shape[along]:
        raise ValueError(f"expected elements along axis {along}, got {list(x.shape)}")
    elif select_last:
        extent = work.shape[along]
        position = extent - 1 - find(np.flip(work, along), axis=along)
    else:
        position = find(work, axis=along)
    position = namespace(x).asarray(position).astype(np.int64, copy=False)
    if not keepdims:
        return position
    if axis is None:
        return position.reshape((1,) * rank)
    return np.expand_dims(position, axis)


@primitive
def cumsum(
    x: Array, axis: Any = 0, *, exclusive: bool = False, reverse: bool = False
) -> Array:
    """The running sum along ``axis``, in the dtype of ``x``.

    ``exclusive`` leaves out the element itself; ``reverse`` runs from the end.
    """
    return _running(np.cumsum, x, axis, exclusive, reverse, 0)


@cumsum.vjp
def _(
    grad: Any,
    out: Any,
    x: Any,
    axis: Any = 0,
    *,
    exclusive: bool = False,
    reverse: bool = False,
) -> Any:
    return lambda: cumsum(grad, axis, exclusive=exclusive, reverse=not reverse)


@primitive
def cumprod(
    x: Array, axis: Any = 0, *, exclusive: bool = False, reverse: bool = False
) -> Array:
    """The running product along ``axis``, in the dtype of ``x``.

    ``exclusive`` leaves out the element itself; ``reverse`` runs from the end.
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
    """``x`` one place nearer the start along ``axis`` (the end if ``reverse``)."""
    pads = (1, -1) if reverse else (-1, 1)
    return pad(x, pads, 0, axis)


@primitive
def recurrence(
    factors: Array, terms: Array, *, axis: int, reverse: bool = False
) -> Array:
    """``s[i] = terms[i] + factors[i] * s[i - 1]`` along ``axis``, from zero.

    ``reverse`` runs from the end: ``s[i] = terms[i] + factors[i] * s[i + 1]``.
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
    accumulator: Any,
    x: Array,
    axis: Any,
    exclusive: bool,
    reverse: bool,
    identity: int,
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
    """``x`` one place later along ``axis``, behind ``first``."""
    rows = np.moveaxis(x, axis, 0)
    out = namespace(x).empty(rows.shape, x.dtype)
    out[:1], out[1:] = first, rows[:-1]
    return np.moveaxis(out, 0, axis)
