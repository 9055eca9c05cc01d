"""Rotary position embedding, and writing into caches of keys and values."""

from typing import Any

from burn.ops.creation import zeros_like
from burn.ops.indexing import getitem, take
from burn.ops.padding import stack
from burn.ops.shape import chunk, concat, reshape, unsqueeze
from burn.ops.support import Array, namespace
from burn.primitive import composite, primitive


@composite
def rotary_embedding(
    x: Any, cos: Any, sin: Any, positions: Any = None, *, interleaved: bool = False
) -> Any:
    """``x`` ``[batch, heads, sequence, size]`` with pairs of features turned.

    ``cos`` and ``sin`` of the angles are ``[batch, sequence, pairs]`` or, with
    ``positions`` (integers ``[batch, sequence]``) that choose their rows,
    ``[length, pairs]``. Features behind the first ``2 * pairs`` stay. A pair is a
    feature of the first half and its like of the second; with ``interleaved``, two
    neighbours. (Su et al. 2021, https://arxiv.org/abs/2104.09864)
    """
    if positions is not None:
        cos, sin = take(cos, positions), take(sin, positions)
    cos, sin = unsqueeze(cos, 1), unsqueeze(sin, 1)
    width = 2 * cos.shape[-1]
    turned, rest = x, None
    if width < x.shape[-1]:
        turned = getitem(x, (..., slice(None, width)))
        rest = getitem(x, (..., slice(width, None)))
    if interleaved:
        first = getitem(turned, (..., slice(0, None, 2)))
        second = getitem(turned, (..., slice(1, None, 2)))
    else:
        first, second = chunk(turned, 2, -1)
    pair = [first * cos - second * sin, first * sin + second * cos]
    if interleaved:
        out = reshape(stack(pair, -1), turned.shape)
    else:
        out = concat(pair, -1)
    return out if rest is None else concat([out, rest], -1)


@primitive
def tensor_scatter(
    cache: Array,
    update: Array,
    starts: Array | None = None,
    *,
    axis: int = -2,
    circular: bool = False,
) -> Array:
    """``cache`` with ``update`` written over the entries from ``starts`` on.

    Both are of one shape but for ``axis``, along which ``update`` is written from
    ``starts[batch]`` (0 without it) on; ``circular`` goes on at the beginning when it
    comes to the end. The first axis is the batch.
    """
    axis = axis % cache.ndim
    out = cache.copy()
    key = _key(out, update.shape[axis], starts, axis, circular)
    xp = namespace(out)
    xp.moveaxis(out, axis, 1)[key] = xp.moveaxis(update, axis, 1)
    return out


@tensor_scatter.vjp
def _(
    grad: Any,
    out: Any,
    cache: Any,
    update: Any,
    starts: Any = None,
    *,
    axis: int = -2,
    circular: bool = False,
) -> Any:
    where = {"axis": axis, "circular": circular}
    count = update.shape[axis]
    return (
        lambda: tensor_scatter(grad, zeros_like(update), starts, **where),
        lambda: tensor_gather(grad, starts, count=count, **where),
        None,
    )


@primitive
def tensor_gather(
    cache: Array,
    starts: Array | None = None,
    *,
    count: int,
    axis: int = -2,
    circular: bool = False,
) -> Array:
    """The ``count`` entries that :func:`tensor_scatter` would write to."""
    axis = axis % cache.ndim
    xp = namespace(cache)
    rows = xp.moveaxis(cache, axis, 1)
    return xp.moveaxis(rows[_key(rows, count, starts, axis, circular)], 1, axis)


@tensor_gather.vjp
def _(
    grad: Any,
    out: Any,
    cache: Any,
    starts: Any = None,
    *,
    count: int,
    axis: int = -2,
    circular: bool = False,
) -> Any:
    where = {"axis": axis, "circular": circular}
    return lambda: tensor_scatter(zeros_like(cache), grad, starts, **where)


def _key(
    cache: Array, count: int, starts: Array | None, axis: int, circular: bool
) -> tuple[Array, Array]:
    """Where the entries lie when ``axis`` is the second.

    Raises:
        IndexError: they go beyond the end.
    """
    xp = namespace(cache)
    place = xp.arange(count)[None, :]
    if starts is not None:
        place = place + xp.asarray(starts)[:, None]
    if circular:
        place = place % cache.shape[axis]
    return xp.arange(cache.shape[0])[:, None], place
