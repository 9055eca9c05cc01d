"""Grouped matrix products: row groups with a matrix each, for mixtures of experts."""

from collections.abc import Iterator
from typing import Any

from burn.ops.support import Array, accumulate, integers, namespace
from burn.primitive import primitive


@primitive
def grouped_matmul(x: Array, weight: Array, ends: Array) -> Array:
    """Return rows of ``x`` [s, k] times their group's matrix in ``weight`` [g, k, m].

    Group i has the rows from ``ends[i - 1]`` (0 for the first) to ``ends[i]``
    (exclusive); ``ends`` [g] are integers in ascending order. Rows after the last group
    are zeros. The result is [s, m].
    """
    xp, left, right = namespace(x), accumulate(x), accumulate(weight)
    out = xp.zeros((len(x), weight.shape[2]), left.dtype)
    for group, rows in _groups(ends):
        out[rows] = left[rows] @ right[group]
    return out.astype(x.dtype, copy=False)


@grouped_matmul.vjp
def _(grad: Any, out: Any, x: Any, weight: Any, ends: Any) -> Any:
    return (
        lambda: grouped_matmul(grad, weight.mT, ends),
        lambda: grouped_outer(x, grad, ends),
        None,
    )


@primitive
def grouped_outer(x: Array, y: Array, ends: Array) -> Array:
    """Return, for each group, ``x.mT @ y`` over its rows [g, k, m], x [s, k], y [s, m].

    Groups are as in :func:`grouped_matmul`.
    """
    xp, left, right = namespace(x), accumulate(x), accumulate(y)
    out = xp.zeros((len(ends), x.shape[1], y.shape[1]), left.dtype)
    for group, rows in _groups(ends):
        out[group] = left[rows].T @ right[rows]
    return out.astype(x.dtype, copy=False)


@grouped_outer.vjp
def _(grad: Any, out: Any, x: Any, y: Any, ends: Any) -> Any:
    return (
        lambda: grouped_matmul(y, grad.mT, ends),
        lambda: grouped_matmul(x, grad, ends),
        None,
    )


def _groups(ends: Array) -> Iterator[tuple[int, slice]]:
    """Yield the index and the rows of each nonempty group."""
    start = 0
    for group, end in enumerate(integers(ends)):
        if end > start:
            yield group, slice(start, end)
        start = max(start, end)
