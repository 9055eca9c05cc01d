"""Scaled dot-product attention.

Heads are an axis of their own: ``[batch, heads, sequence, size]``. Keys and values may
have fewer heads than queries; each then serves as many neighbouring heads.
"""

from typing import Any, NamedTuple

import numpy as np

from burn.dtypes import HALVES, DType, bool_, float32
from burn.ops import bounds
from burn.ops.activation import tanh
from burn.ops.broadcast import expand
from burn.ops.casting import cast
from burn.ops.creation import arange
from burn.ops.indexing import getitem
from burn.ops.logic import greater_equal, less, less_equal, logical_and, where
from burn.ops.matmul import matmul
from burn.ops.padding import pad
from burn.ops.shape import concat, reshape, transpose
from burn.ops.softmax import softmax, softmax_grad
from burn.ops.support import Array, accumulate
from burn.primitive import composite, primitive

#: How many keys a query may see to its left and right; -1 is all of them.
Window = tuple[int, int]
EVERYWHERE: Window = (-1, -1)


@composite(outputs=1, autocast="lower")
def attention(
    query: Any,
    key: Any,
    value: Any,
    mask: Any = None,
    offset: Any = 0,
    lengths: Any = None,
    sink: Any = None,
    *,
    scale: float | None = None,
    softcap: float = 0.0,
    causal: bool = False,
    window: Window = EVERYWHERE,
    softmax_dtype: DType | None = None,
) -> Any:
    """``softmax(query @ key.mT * scale + mask) @ value``.

    ``query`` is ``[batch, heads, rows, size]``, ``key`` ``[batch, groups, columns,
    size]``, ``value`` ``[batch, groups, columns, out]`` and the result
    ``[batch, heads, rows, out]``, of the dtype of ``query``. Without an axis for heads
    there is one. The other arguments are those of :func:`attention_weights`. Half types
    are computed in float32.
    """
    one_head = len(query.shape) == 3
    if one_head:
        query, key, value, mask = map(_with_head, (query, key, value, mask))
    options = _Options(scale, softcap, causal, window, softmax_dtype)
    places = (mask, offset, lengths, sink)
    weights = _weights(_wide(query), _wide(key), places, options)
    out = _as(_weighted(weights, _wide(value)), query.dtype)
    return getitem(out, (slice(None), 0)) if one_head else out


@composite(outputs=1)
def attention_weights(
    query: Any,
    key: Any,
    mask: Any = None,
    offset: Any = 0,
    lengths: Any = None,
    sink: Any = None,
    *,
    scale: float | None = None,
    softcap: float = 0.0,
    causal: bool = False,
    window: Window = EVERYWHERE,
    softmax_dtype: DType | None = None,
) -> Any:
    """What each query takes of each value: ``[batch, heads, rows, columns]``.

    The softmax of :func:`attention_scores`, taken in ``softmax_dtype`` if it is given;
    a query that sees no key takes nothing. Where nothing hides keys, weights of scores
    that are all minus infinity are NaN, as in any softmax. ``sink`` is the score of a
    key without a value, one number a head.
    """
    options = _Options(scale, softcap, causal, window, softmax_dtype)
    places = (mask, offset, lengths, sink)
    return _as(_weights(_wide(query), _wide(key), places, options), query.dtype)


@composite(outputs=1)
def attention_scores(
    query: Any,
    key: Any,
    mask: Any = None,
    offset: Any = 0,
    lengths: Any = None,
    *,
    scale: float | None = None,
    softcap: float = 0.0,
    causal: bool = False,
    window: Window = EVERYWHERE,
) -> Any:
    """How well each query fits each key: ``[batch, heads, rows, columns]``.

    The products are multiplied by ``scale`` (1 / sqrt(size) if not given) and, with
    ``softcap``, squeezed into plus and minus that. ``mask`` broadcasts to the result
    (shorter in its last axis, it hides the keys behind): a bool says what is seen, a
    float is added. Of the keys of a batch only the first ``lengths[batch]`` are seen.
    Query ``i`` stands at ``i + offset`` among the keys (one number, or one a batch):
    ``causal`` hides what comes after it, ``window`` what is further to its left and
    right. The score of what is hidden is minus infinity.
    """
    options = _Options(scale, softcap, causal, window)
    places = (mask, offset, lengths)
    return _as(_scores(_wide(query), _wide(key), places, options), query.dtype)


@composite(outputs=1)
def weighted_values(weights: Any, value: Any) -> Any:
    """``weights @ value``: ``[batch, heads, rows, columns]`` of values to a group.

    The result has the dtype of ``weights``.
    """
    return _as(_weighted(_wide(weights), _wide(value)), weights.dtype)


class _Options(NamedTuple):
    """What :func:`attention` is told of how to score."""

    scale: float | None
    softcap: float
    causal: bool
    window: Window
    softmax_dtype: DType | None = None

    @property
    def hides(self) -> bool:
        """Whether the place of a key among the others may hide it."""
        return self.causal or self.window != EVERYWHERE


def _weights(
    query: Any, key: Any, places: tuple[Any, Any, Any, Any], options: _Options
) -> Any:
    mask, offset, lengths, sink = places
    scores = _scores(query, key, (mask, offset, lengths), options)
    if sink is not None:
        column = _as(reshape(sink, (1, -1, 1, 1)), query.dtype)
        scores = concat([scores, expand(column, (*scores.shape[:3], 1))], -1)
    scores = _as(scores, options.softmax_dtype or query.dtype)
    hides = options.hides or any(operand is not None for operand in (mask, lengths))
    weights = _as(masked_softmax(scores) if hides else softmax(scores), query.dtype)
    return weights if sink is None else getitem(weights, (..., slice(None, -1)))


def _scores(query: Any, key: Any, places: tuple[Any, ...], options: _Options) -> Any:
    mask, offset, lengths = places
    scale, softcap = options.scale, options.softcap
    scores = _products(query, key) * (
        query.shape[-1] ** -0.5 if scale is None else scale
    )
    if softcap > 0:
        scores = tanh(scores / softcap) * softcap
    rows, columns = query.shape[-2], key.shape[-2]
    seen = _in_reach(rows, columns, offset, options.window, options.causal)
    if lengths is not None:
        seen = _both(seen, less(arange(columns), reshape(lengths, (-1, 1, 1, 1))))
    if mask is not None:
        mask = _covering(mask, columns)
        if mask.dtype == bool_:
            seen = _both(seen, mask)
        else:
            scores = scores + _as(mask, query.dtype)
    return scores if seen is None else where(seen, scores, -np.inf)


def _weighted(weights: Any, value: Any) -> Any:
    batch, heads, rows, columns = weights.shape
    groups, size = value.shape[1], value.shape[3]
    if heads == groups:
        return matmul(weights, value)
    rows_of_group = heads // groups * rows
    out = matmul(reshape(weights, (batch, groups, rows_of_group, columns)), value)
    return reshape(out, (batch, heads, rows, size))


def _with_head(x: Any) -> Any:
    """``x`` with an axis for one head, if it has one for the batch."""
    if x is None or len(x.shape) != 3:
        return x
    return getitem(x, (slice(None), None))


def _wide(x: Any) -> Any:
    """``x`` in float32 if it is of a half type: it is rounded once, in the end."""
    return cast(x, dtype=float32) if x.dtype in HALVES else x


def _as(x: Any, dtype: DType) -> Any:
    return x if x.dtype == dtype else cast(x, dtype=dtype)


def _products(query: Any, key: Any) -> Any:
    """``query @ key.mT``; the queries that share a key are rows of one matrix."""
    batch, heads, rows, size = query.shape
    groups, columns = key.shape[1:3]
    if heads == groups:
        return matmul(query, key.mT)
    rows_of_group = heads // groups * rows
    products = matmul(reshape(query, (batch, groups, rows_of_group, size)), key.mT)
    return reshape(products, (batch, heads, rows, columns))


def _in_reach(
    rows: int, columns: int, offset: Any, window: Window, causal: bool
) -> Any:
    """Whether a query may look as far as a key; None if all may."""
    left, right = window
    if causal:
        right = 0
    if left < 0 and right < 0:
        return None
    if hasattr(offset, "shape"):
        offset = reshape(offset, (-1, 1, 1, 1))
    row = reshape(arange(rows), (rows, 1)) + offset
    column, seen = arange(columns), None
    if right >= 0:
        seen = less_equal(column, row + right)
    if left >= 0:
        seen = _both(seen, greater_equal(column, row - left))
    return seen


def _both(seen: Any, other: Any) -> Any:
    return other if seen is None else logical_and(seen, other)


def _covering(mask: Any, columns: int) -> Any:
    """``mask`` with ``columns`` keys: those that it does not reach are hidden."""
    missing = columns - mask.shape[-1]
    if missing <= 0:
        return mask
    hidden = False if mask.dtype == bool_ else -np.inf
    return pad(mask, (0, missing), hidden, (-1,))


@primitive(traceable=True, removable=True, bound=bounds.up_to_one, memory_bound=True)
def masked_softmax(x: Array) -> Array:
    """The softmax over the last axis, where a row of minus infinity becomes 0."""
    if not x.size:
        return x.copy()
    work = accumulate(x)
    largest = np.max(work, axis=-1, keepdims=True)
    largest = np.where(largest == -np.inf, work.dtype.type(0), largest)
    out = np.exp(work - largest)
    total = np.sum(out, axis=-1, keepdims=True)
    out /= np.where(total == 0, work.dtype.type(1), total)
    return out.astype(x.dtype, copy=False)


@masked_softmax.vjp
def _(grad: Any, out: Any, x: Any) -> Any:
    return lambda: softmax_grad(grad, out)


@composite(outputs=1)
def split_heads(x: Any, heads: int) -> Any:
    """``[batch, sequence, heads * size]`` as ``[batch, heads, sequence, size]``."""
    batch, length, features = x.shape
    return transpose(reshape(x, (batch, length, heads, features // heads)), 1, 2)


@composite(outputs=1)
def merge_heads(x: Any) -> Any:
    """``[batch, heads, sequence, size]`` as ``[batch, sequence, heads * size]``."""
    batch, heads, length, size = x.shape
    return reshape(transpose(x, 1, 2), (batch, length, heads * size))
