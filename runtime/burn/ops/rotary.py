"""Rotary position embedding, and updates of key-value caches."""

from typing import Any

from burn.dtypes import HALVES, float32
from burn.ops.casting import cast
from burn.ops.creation import arange, zeros_like
from burn.ops.indexing import getitem, take
from burn.ops.logic import less, where
from burn.ops.padding import pad, stack
from burn.ops.shape import chunk, concat, reshape, unsqueeze
from burn.ops.support import Array, namespace
from burn.primitive import composite, primitive


@composite(outputs=1)
def rotary_embedding(
    x: Any, cos: Any, sin: Any, positions: Any = None, *, interleaved: bool = False
) -> Any:
    """Return ``x`` ``[batch, heads, sequence, size]`` with rotated pairs of features.

    ``cos`` and ``sin`` of the angles are ``[batch, sequence, pairs]`` or, with
    ``positions`` (integers ``[batch, sequence]``) that select their rows, ``[length,
    pairs]``. Features after the first ``2 * pairs`` are unchanged. Pairs are features i
    and i + pairs, or neighbors with ``interleaved``. (Su et al. 2021,
    https://arxiv.org/abs/2104.09864)
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
    if x.dtype in HALVES:  # the difference of two products would lose its digits
        first, second = cast(first, dtype=float32), cast(second, dtype=float32)
    pair = [first * cos - second * sin, first * sin + second * cos]
    pair = [cast(part, dtype=x.dtype) for part in pair]
    out = reshape(stack(pair, -1), turned.shape) if interleaved else concat(pair, -1)
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
    """Return ``cache`` with the entries from ``starts`` replaced by ``update``.

    Both have the same shape except along ``axis``, where ``update`` starts at
    ``starts[batch]`` (default 0); ``circular`` wraps around at the end. The first axis
    is the batch.
    """
    axis = axis % cache.ndim
    xp, out = namespace(cache), cache.copy()
    rows = xp.moveaxis(out, axis, 1)
    key = _key(rows, update.shape[axis], starts, circular)
    rows[key] = xp.moveaxis(update, axis, 1)
    return out


@tensor_scatter.vjp
def _(
    grad: Any, out: Any, cache: Any, update: Any, starts: Any = None, **options: Any
) -> Any:
    count = update.shape[options.get("axis", -2)]
    return (
        lambda: tensor_scatter(grad, zeros_like(update), starts, **options),
        lambda: tensor_gather(grad, starts, count=count, **options),
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
    """Return the ``count`` entries that :func:`tensor_scatter` would overwrite."""
    axis = axis % cache.ndim
    xp = namespace(cache)
    rows = xp.moveaxis(cache, axis, 1)
    return xp.moveaxis(rows[_key(rows, count, starts, circular)], 1, axis)


@tensor_gather.vjp
def _(
    grad: Any, out: Any, cache: Any, starts: Any = None, *, count: int, **options: Any
) -> Any:
    return lambda: tensor_scatter(zeros_like(cache), grad, starts, **options)


def _key(
    rows: Array, count: int, starts: Array | None, circular: bool
) -> tuple[Array, Array]:
    """Return the indices of the entries along the first two axes.

    Raises:
        IndexError: they exceed the end.
    """
    xp = namespace(rows)
    position = xp.arange(count)[None, :]
    if starts is not None:
        position = position + xp.asarray(starts)[:, None]
    if circular:
        position = position % rows.shape[1]
    return xp.arange(rows.shape[0])[:, None], position


@composite
def extend_cache(cache: Any, update: Any, starts: Any, length: Any) -> Any:
    """Return ``cache`` ``[batch, heads, rows, size]`` with ``update`` at ``starts``.

    ``starts`` is one integer per batch; later entries of ``cache`` are dropped. The
    result has ``length`` entries, or as many as ``cache`` if that is more, with zeros
    after ``update``.
    """
    position = reshape(arange(cache.shape[2]), (-1, 1))
    cache = where(less(position, reshape(starts, (-1, 1, 1, 1))), cache, 0)
    missing = int(length) - cache.shape[2]
    if missing > 0:
        cache = pad(cache, (0, missing), axes=(2,))
    return tensor_scatter(cache, update, starts)
