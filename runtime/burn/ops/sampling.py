"""Weighted sums of elements at run-time indices, the basis of all samplers.

The indices are the same for all channels. ``gather_sum``, ``scatter_sum`` and
``gather_dot`` are the three contractions of one trilinear form; the gradients of each
are therefore the other two, at any order.
"""

from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from burn import dtypes
from burn.ops.activation import clip
from burn.ops.broadcast import like
from burn.ops.casting import cast
from burn.ops.elementwise import floor
from burn.ops.indexing import add_rows
from burn.ops.logic import logical_and, where
from burn.ops.padding import stack
from burn.ops.scatter import gather_elements
from burn.ops.support import Array, contract, namespace
from burn.primitive import primitive

#: The index of a missing element; every sum with it is negative.
OUTSIDE = -(1 << 40)

# As many elements are read at once: calling for each tap takes longer than that.
_FEW = 65_536

#: Along one axis: int64 places, with :data:`OUTSIDE` among them, and their weights.
Taps = list[tuple[Any, Any]]


@primitive
def gather_sum(x: Array, index: Array, weight: Array | None = None) -> Array:
    """Return [N, C, P], sums over k of ``weight[n, k, p] * x[n, c, index[n, k, p]]``.

    ``x`` is [N, C, S], ``index`` int64 [N, K, P], ``weight`` [N, K, P] (1 without it)
    and the result in the dtype of ``x``. A negative index adds nothing.
    """
    batch, channels, size = x.shape
    if x.size <= index.size * channels <= _FEW and x.dtype.kind == "f":
        return _sum_of_few(x, index, weight)
    rows = x.swapaxes(1, 2).reshape(batch * size, channels)
    total = None
    for tap in range(index.shape[1]):
        part = _read(rows, _flat(index[:, tap], size))
        if weight is not None:
            part = part.astype(_working(x.dtype), copy=False)
            part *= weight[:, tap].reshape(-1, 1).astype(part.dtype)
        if total is None:
            total = part
        else:
            total += part
    assert total is not None
    out = total.reshape(batch, index.shape[2], channels).swapaxes(1, 2)
    return out.astype(x.dtype, copy=False)


def _sum_of_few(x: Array, index: Array, weight: Array | None) -> Array:
    """Return :func:`gather_sum`, with all taps read at once and zeros outside."""
    xp, (batch, channels, size) = namespace(x), x.shape
    rows = xp.zeros((batch, size + 1, channels), _working(x.dtype))
    rows[:, :size] = x.swapaxes(1, 2)
    starts = xp.arange(batch, dtype=np.int64).reshape(-1, 1, 1) * (size + 1)
    flat = xp.where(index < 0, -1, index + starts)
    terms = xp.take(rows.reshape(batch * (size + 1), channels), flat, axis=0)
    if weight is not None:
        terms *= weight[..., None].astype(terms.dtype, copy=False)
    total = terms[:, 0] if terms.shape[1] == 1 else terms.sum(1)
    return total.swapaxes(1, 2).astype(x.dtype, copy=False)


@gather_sum.vjp
def _(grad: Any, out: Any, x: Any, index: Any, weight: Any = None) -> Any:
    return (
        lambda: scatter_sum(grad, index, weight, size=x.shape[2]),
        None,
        lambda: like(gather_dot(grad, x, index), weight),
    )


@primitive
def scatter_sum(
    grad: Array, index: Array, weight: Array | None = None, *, size: int
) -> Array:
    """Return [N, C, size] with ``weight[n, k, p] * grad[n, c, p]`` added at ``index``.

    The adjoint of :func:`gather_sum` in ``x``.
    """
    batch, channels, count = grad.shape
    rows = grad.swapaxes(1, 2).reshape(batch * count, channels)
    rows = rows.astype(_working(grad.dtype), copy=False)
    out = namespace(grad).zeros((batch * size, channels), rows.dtype)
    for tap in range(index.shape[1]):
        flat = _flat(index[:, tap], size)
        part = rows
        if weight is not None:
            part = rows * weight[:, tap].reshape(-1, 1).astype(rows.dtype)
        inside = flat >= 0
        add_rows(out, flat[inside], part[inside])
    whole = out.reshape(batch, size, channels).swapaxes(1, 2)
    return whole.astype(grad.dtype, copy=False)


@scatter_sum.vjp
def _(
    grad: Any, out: Any, inner: Any, index: Any, weight: Any = None, *, size: int
) -> Any:
    return (
        lambda: gather_sum(grad, index, weight),
        None,
        lambda: like(gather_dot(inner, grad, index), weight),
    )


@primitive
def gather_dot(grad: Array, x: Array, index: Array) -> Array:
    """Return the sums over c of ``grad[n, c, p] * x[n, c, index[n, k, p]]``, [N, K, P].

    The adjoint of :func:`gather_sum` in ``weight``.
    """
    batch, channels, size = x.shape
    dtype = _working(x.dtype)
    rows = x.swapaxes(1, 2).reshape(batch * size, channels)
    other = grad.swapaxes(1, 2).reshape(batch * index.shape[2], channels)
    other = other.astype(dtype, copy=False)
    out = namespace(x).empty(index.shape, dtype)
    for tap in range(index.shape[1]):
        part = _read(rows, _flat(index[:, tap], size)).astype(dtype, copy=False)
        dots = contract("pc,pc->p", part, other)
        out[:, tap] = dots.reshape(batch, index.shape[2])
    return out.astype(grad.dtype, copy=False)


@gather_dot.vjp
def _(grad: Any, out: Any, inner: Any, x: Any, index: Any) -> Any:
    return (
        lambda: like(gather_sum(x, index, grad), inner),
        lambda: like(scatter_sum(inner, index, grad, size=x.shape[2]), x),
        None,
    )


@primitive(no_gradient="the results are integers")
def tap_argmax(x: Array, index: Array, weight: Array | None = None) -> Array:
    """Return, for each result of :func:`gather_sum`, the k of the largest term, int64.

    Of equal terms the first; 0 where every index is negative.
    """
    batch, channels, size = x.shape
    rows = x.swapaxes(1, 2).reshape(batch * size, channels)
    best, choice = None, None
    for tap in range(index.shape[1]):
        flat = _flat(index[:, tap], size)
        part = _read(rows, flat).astype(_working(x.dtype), copy=False)
        if weight is not None:
            part *= weight[:, tap].reshape(-1, 1).astype(part.dtype)
        part[flat < 0] = -np.inf
        if best is None or choice is None:
            best, choice = part, np.zeros_like(part, dtype=np.int64)
        else:
            better = part > best
            choice[better] = tap
            best[better] = part[better]
    assert choice is not None
    return choice.reshape(batch, index.shape[2], channels).swapaxes(1, 2)


def gather_max(x: Any, index: Any, weight: Any = None) -> Any:
    """Return :func:`gather_sum` with the largest term instead of the sum; 0 if none."""
    if x.shape[2] == 0:
        return gather_sum(x, index)
    choice = tap_argmax(x, index, weight)
    chosen = gather_elements(index, choice, 1)
    values = gather_elements(x, where(chosen < 0, 0, chosen), 2)
    if weight is not None:
        values = values * cast(gather_elements(weight, choice, 1), dtype=values.dtype)
    return where(chosen < 0, 0.0, values)


def linear_taps(at: Any, extent: int) -> Taps:
    """Return the two neighbors of each of ``at`` along an axis; 0 beyond its ends."""
    # Positions further out are outside as well; these fit into int64.
    at = clip(at, -2.0, extent + 1.0)
    start = floor(at)
    low = cast(where(start == start, start, -2.0), dtype=dtypes.int64)
    behind = at - start
    return [(within(low, extent), 1.0 - behind), (within(low + 1, extent), behind)]


def within(position: Any, extent: int) -> Any:
    """Return ``position`` if it is below ``extent``, else :data:`OUTSIDE`."""
    return where(logical_and(position >= 0, position < extent), position, OUTSIDE)


def crossed(axes: list[Taps], size: tuple[int, ...]) -> tuple[Any, Any]:
    """Return the taps [N, K, P] of all combinations of several axes.

    The taps of each axis are [N, P]; ``size`` are the extents of the axes, which are
    counted as one, row by row.
    """
    places, weights = [], []
    for combination in product(*axes):
        position: Any = 0
        for (along, _), extent in zip(combination, size, strict=True):
            position = position * extent + along
        places.append(where(position < 0, -1, position))
        weights.append(reduce(lambda a, b: a * b, (w for _, w in combination)))
    return stack(places, 1), stack(weights, 1)


def _flat(index: Array, size: int) -> Array:
    """Return ``index`` [N, P] into rows of the flattened batch; negatives stay."""
    xp = namespace(index)
    starts = xp.arange(len(index), dtype=np.int64)[:, None] * size
    return xp.where(index < 0, -1, index + starts).ravel()


def _read(rows: Array, flat: Array) -> Array:
    """Return the rows at ``flat``, with zeros (empty strings) at negative indices."""
    outside = flat < 0
    if not len(rows):
        return namespace(rows).zeros((len(flat), rows.shape[1]), rows.dtype)
    result = namespace(rows).take(rows, np.maximum(flat, 0), axis=0)
    if outside.any():
        result[outside] = "" if rows.dtype == dtypes.string else 0
    return result


def _working(dtype: Any) -> Any:
    """Return the dtype of sums."""
    if dtypes.is_complex(dtype):
        return dtype
    narrow = dtype in dtypes.HALVES or dtype.itemsize < 4
    return np.float32 if narrow or dtype == dtypes.float32 else np.float64
