"""Scattering into copies of a tensor, and gathering along an axis."""

from collections.abc import Callable
from typing import Any

import numpy as np

from burn.ops import bounds
from burn.ops.casting import cast
from burn.ops.creation import full_like, ones_like, zeros_like
from burn.ops.indexing import gather_nd, nd_key
from burn.ops.logic import where
from burn.ops.support import Array, accumulate, namespace
from burn.primitive import primitive

_COMBINE = {"add": "add", "mul": "multiply", "min": "minimum", "max": "maximum"}


def along(indices: Array, axis: int) -> tuple[Array, ...]:
    """Return the key that selects element ``indices[i, j, ...]`` along ``axis``.

    ``indices`` may be shorter than the tensor along the other axes.
    """
    xp = namespace(indices)
    key = []
    for other, extent in enumerate(indices.shape):
        shape = [1] * indices.ndim
        shape[other] = extent
        key.append(xp.arange(extent).reshape(shape))
    key[axis] = indices
    return tuple(key)


@primitive(traceable=True, bound=bounds.of_first, memory_bound=True)
def gather_elements(x: Array, indices: Array, axis: int = 0) -> Array:
    """Return ``out[i, j, k] = x[indices[i, j, k], j, k]`` for axis 0, and so on.

    The result has the shape of ``indices``; negative ones count from the end.
    """
    return x[along(indices, axis)]


@gather_elements.vjp
def _(grad: Any, out: Any, x: Any, indices: Any, axis: int = 0) -> Any:
    return lambda: scatter_elements(
        zeros_like(x), indices, grad, axis=axis, reduction="add"
    )


@primitive(traceable=True)
def scatter_elements(
    x: Array, indices: Array, updates: Array, *, axis: int = 0, reduction: str = "none"
) -> Array:
    """Return ``x`` with ``out[indices[i, j, k], j, k] = updates[i, j, k]`` for axis 0.

    ``reduction`` ``"add"``, ``"mul"``, ``"min"`` or ``"max"`` combines updates with the
    previous element; with ``"none"`` the result of repeated indices is undefined.
    """
    return _write(x, along(indices, axis), updates, reduction)


@scatter_elements.vjp
def _(
    grad: Any,
    out: Any,
    x: Any,
    indices: Any,
    updates: Any,
    *,
    axis: int = 0,
    reduction: str = "none",
) -> Any:
    def read(values: Any) -> Any:
        return gather_elements(values, indices, axis)

    def write(values: Any, at: Any, reduction: str) -> Any:
        return scatter_elements(values, indices, at, axis=axis, reduction=reduction)

    return _shares(grad, out, x, updates, read, write, reduction)


@primitive(traceable=True)
def scatter_nd(
    x: Array, indices: Array, updates: Array, *, reduction: str = "none"
) -> Array:
    """Return ``x`` with ``updates`` at the index tuples in ``indices[..., :]``.

    ``reduction`` is that of :func:`scatter_elements`.
    """
    return _write(x, nd_key(indices, 0), updates, reduction)


@scatter_nd.vjp
def _(
    grad: Any, out: Any, x: Any, indices: Any, updates: Any, *, reduction: str = "none"
) -> Any:
    def read(values: Any) -> Any:
        return gather_nd(values, indices)

    def write(values: Any, at: Any, reduction: str) -> Any:
        return scatter_nd(values, indices, at, reduction=reduction)

    return _shares(grad, out, x, updates, read, write, reduction)


def _write(x: Array, key: Any, updates: Array, reduction: str) -> Array:
    if reduction == "none":
        out = x.copy()
        out[key] = updates
        return out
    if reduction not in _COMBINE:
        raise ValueError(f"expected one of none, {', '.join(_COMBINE)}: {reduction!r}")
    work = accumulate(x)
    out = work.copy() if work is x else work
    updates = updates.astype(out.dtype, copy=False)
    xp = namespace(x)
    if reduction == "mul" and xp is not np:
        _multiply(out, key, updates)
    else:
        getattr(xp, _COMBINE[reduction]).at(out, key, updates)
    return out.astype(x.dtype, copy=False)


def _multiply(out: Array, key: Any, updates: Array) -> None:
    """Multiply in place without a scatter kernel: in rounds of distinct indices."""
    xp = namespace(out)
    places = xp.arange(out.size).reshape(out.shape)[key].reshape(-1)
    factors = xp.broadcast_to(updates, updates.shape).reshape(-1)
    flat = out.reshape(-1)
    order = xp.argsort(places)
    places, factors = places[order], factors[order]
    position = xp.arange(places.size)
    fresh = xp.concatenate([xp.ones(1, bool), places[1:] != places[:-1]])
    turn = position - position[fresh][xp.cumsum(fresh) - 1]
    for round_ in range(int(turn.max()) + 1 if places.size else 0):
        now = turn == round_
        flat[places[now]] *= factors[now]
    out[...] = flat.reshape(out.shape)


def _shares(
    grad: Any,
    out: Any,
    x: Any,
    updates: Any,
    read: Callable[[Any], Any],
    write: Callable[[Any, Any, str], Any],
    reduction: str,
) -> tuple[Any, ...]:
    """Return the gradients of a scatter, in terms of itself and of its gather."""
    if reduction == "none":
        nothing = full_like(updates, 0)
        return lambda: write(grad, nothing, "none"), None, lambda: read(grad)
    if reduction == "add":
        return grad, None, lambda: read(grad)
    if reduction == "mul":
        return (
            lambda: grad * write(ones_like(x), updates, "mul"),
            None,
            lambda: _to_factors(grad, x, updates, read, write),
        )
    is_x = cast(x == out, dtype=x.dtype)
    is_update = cast(updates == read(out), dtype=x.dtype)
    share = grad / write(is_x, is_update, "add")
    return lambda: share * is_x, None, lambda: read(share) * is_update


def _to_factors(
    grad: Any,
    x: Any,
    updates: Any,
    read: Callable[[Any], Any],
    write: Callable[[Any, Any, str], Any],
) -> Any:
    """Return, for every update, ``grad`` times the product of the other factors.

    Zeros are counted instead of divided by: one other zero makes the product 0.
    """
    nothing = updates == 0
    factors = where(nothing, 1, updates)
    zeros = write(zeros_like(x), cast(nothing, dtype=x.dtype), "add")
    others = read(zeros) - cast(nothing, dtype=x.dtype)
    share = read(grad * write(x, factors, "mul")) / factors
    return where(others == 0, share, 0.0)
