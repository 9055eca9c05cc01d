"""Sorting, and indices of the largest and smallest elements."""

import builtins
from typing import Any

import numpy as np

from burn.ops.casting import cast
from burn.ops.creation import zeros_like
from burn.ops.indexing import one_hot_mask
from burn.ops.scatter import along, gather_elements, scatter_elements
from burn.ops.support import Array, accumulate, as_array, integers, namespace
from burn.primitive import composite, primitive


@primitive(outputs=2, traceable=True)
def topk(
    x: Array, k: Any, *, axis: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Array, Array]:
    """Return the ``k`` largest or smallest elements along ``axis``, and int64 indices.

    They are always in order, independently of ``sorted``; equal elements are in order
    of index.

    Raises:
        ValueError: the axis has fewer than ``k`` elements.
    """
    (count,) = integers(k)
    if not 0 <= count <= x.shape[axis]:
        raise ValueError(f"expected k in [0, {x.shape[axis]}], got {count}")
    key = [builtins.slice(None)] * x.ndim
    key[axis] = builtins.slice(0, count)
    order = _order(x, axis, largest)[tuple(key)]
    return x[along(order, axis)], order


@topk.vjp_reading({0: (0,)}, results=(1,))
def _(grad: Any, out: Any, x: Any, k: Any, *, axis: int = -1, **order: bool) -> Any:
    return lambda: scatter_elements(
        zeros_like(x), out[1], grad[0], axis=axis, reduction="add"
    )


def _order(x: Array, axis: int, descending: bool) -> Array:
    """Return the stable sort order of ``x`` along ``axis``, as int64."""
    work = accumulate(x)
    if not descending:
        return np.argsort(work, axis=axis, kind="stable").astype(np.int64, copy=False)
    # Turned round twice: equal elements keep their order and nothing is negated.
    order = np.argsort(np.flip(work, axis), axis=axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(order, axis).astype(np.int64, copy=False)


@primitive(no_gradient="the results are integers")
def argsort(x: Array, axis: int = -1, *, descending: bool = False) -> Array:
    """Return the int64 indices that sort ``x`` along ``axis``, stably."""
    return _order(x, axis, descending)


@composite
def sort(x: Array, axis: int = -1, *, descending: bool = False) -> Any:
    """Return ``x`` sorted along ``axis``."""
    return gather_elements(x, argsort(x, axis, descending=descending), axis)


@primitive(traceable=True, no_gradient="the results are integers")
def argmax(
    x: Array,
    axis: int | None = None,
    *,
    keepdims: bool = False,
    select_last: bool = False,
) -> Array:
    """Return the int64 index of the largest element along ``axis``, or of all elements.

    Of equal elements the first, or with ``select_last`` the last.
    """
    return _position("argmax", x, axis, keepdims, select_last)


@primitive(traceable=True, no_gradient="the results are integers")
def argmin(
    x: Array,
    axis: int | None = None,
    *,
    keepdims: bool = False,
    select_last: bool = False,
) -> Array:
    """Return the int64 index of the least element along ``axis``, or of all elements.

    Of equal elements the first, or with ``select_last`` the last.
    """
    return _position("argmin", x, axis, keepdims, select_last)


@composite(outputs=1)
def hardmax(x: Array, *, axis: int = -1) -> Any:
    """Return 1 at the largest element along ``axis``, the first of equal ones, else 0.

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
    rest = list(work.shape)
    del rest[along]
    if 0 in rest:  # NumPy refuses an empty axis also where nothing is asked
        position = np.zeros(rest)
    elif not work.shape[along]:
        raise ValueError(f"expected elements along axis {along}, got {list(x.shape)}")
    elif select_last:
        extent = work.shape[along]
        position = extent - 1 - find(np.flip(work, along), axis=along)
    else:
        position = find(work, axis=along)
    position = as_array(x, position).astype(np.int64, copy=False)
    if not keepdims:
        return position
    if axis is None:
        return position.reshape((1,) * rank)
    return np.expand_dims(position, axis)
