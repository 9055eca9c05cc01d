"""Scaled dot-product attention.

Heads have their own axis: ``[batch, heads, sequence, size]``. Keys and values may have
fewer heads than queries (grouped-query attention): consecutive query heads share one.
"""

from typing import Any, NamedTuple

import numpy as np

from burn.dtypes import HALVES, DType, bool_, float32
from burn.facts import NORMALIZATION
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

#: The number of visible keys to the left and right of a query; -1 means all.
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
    """Return ``softmax(query @ key.mT * scale + mask) @ value``.

    ``query`` is ``[batch, heads, rows, size]``, ``key`` ``[batch, groups, columns,
    size]``, ``value`` ``[batch, groups, columns, out]`` and the result ``[batch, heads,
    rows, out]``, of the dtype of ``query``. Operands without a head axis have one head.
    The other arguments are those of :func:`attention_weights`. Half types are computed
    in float32.
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
    """Return the weights of values for each query: ``[batch, heads, rows, columns]``.

    The weights are the softmax of :func:`attention_scores`, computed in
    ``softmax_dtype`` if given; a query whose keys are all masked has weights 0. Without
    any masking, rows of scores that are all minus infinity are NaN, as in any softmax.
    ``sink`` is the score of a key without a value, one number per head.
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
    """Return the scores of each query and key: ``[batch, heads, rows, columns]``.

    The products are multiplied by ``scale`` (default 1 / sqrt(size)) and, with
    ``softcap``, become ``softcap * tanh(score / softcap)``. ``mask`` broadcasts to the
    result (if it is shorter along the last axis, the remaining keys are masked): True
    marks visible keys, a float mask is added. Only the first ``lengths[batch]`` keys
    are visible. Query ``i`` has the position ``i + offset`` among the keys (one number,
    or one per batch): ``causal`` masks later keys, ``window`` limits the distance to
    the left and right. Masked scores are minus infinity.
    """
    options = _Options(scale, softcap, causal, window)
    places = (mask, offset, lengths)
    return _as(_scores(_wide(query), _wide(key), places, options), query.dtype)


@composite(outputs=1)
def weighted_values(weights: Any, value: Any) -> Any:
    """Return ``weights @ value``: ``[batch, heads, rows, columns]`` by grouped values.

    The result has the dtype of ``weights``.
    """
    return _as(_weighted(_wide(weights), _wide(value)), weights.dtype)


class _Options(NamedTuple):
    """Options of the scores of :func:`attention`."""

    scale: float | None
    softcap: float
    causal: bool
    window: Window
    softmax_dtype: DType | None = None

    @property
    def hides(self) -> bool:
        """Return whether a key may be masked because of its position."""
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
    """Return ``x`` with an axis for one head, if it has a batch axis but no heads."""
    if x is None or len(x.shape) != 3:
        return x
    return getitem(x, (slice(None), None))


def _wide(x: Any) -> Any:
    """Return ``x`` converted from half types to float32, so that results round once."""
    return cast(x, dtype=float32) if x.dtype in HALVES else x


def _as(x: Any, dtype: DType) -> Any:
    return x if x.dtype == dtype else cast(x, dtype=dtype)


def _products(query: Any, key: Any) -> Any:
    """Return ``query @ key.mT``; queries that share a key are rows of one matrix."""
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
    """Return the mask of keys within the window of each query, None if all are."""
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
    """Return ``mask`` extended to ``columns`` keys; additional keys are masked."""
    missing = columns - mask.shape[-1]
    if missing <= 0:
        return mask
    hidden = False if mask.dtype == bool_ else -np.inf
    return pad(mask, (0, missing), hidden, (-1,))


@primitive(**NORMALIZATION | {"bound": bounds.up_to_one})
def masked_softmax(x: Array) -> Array:
    """Return the softmax over the last axis, with 0 in rows of minus infinity."""
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


masked_softmax.declare_reads(results=(0,))


@composite(outputs=1)
def split_heads(x: Any, heads: int) -> Any:
    """Return ``[batch, rows, heads * size]`` as ``[batch, heads, rows, size]``."""
    batch, length, features = x.shape
    return transpose(reshape(x, (batch, length, heads, features // heads)), 1, 2)


@composite(outputs=1)
def merge_heads(x: Any) -> Any:
    """Return ``[batch, heads, rows, size]`` as ``[batch, rows, heads * size]``."""
    batch, heads, length, size = x.shape
    return reshape(transpose(x, 1, 2), (batch, length, heads * size))
