"""Products of groups of rows with a matrix for each group: experts of a mixture."""

from collections.abc import Iterator
from typing import Any

from burn.ops.support import Array, accumulate, integers, namespace
from burn.primitive import primitive


@primitive
def grouped_matmul(x: Array, weight: Array, ends: Array) -> Array:
    """Rows of ``x`` [s, k] times the matrix of their group in ``weight`` [g, k, m].

    Group i has the rows from ``ends[i - 1]`` (0 for the first) up to ``ends[i]``;
    ``ends`` [g] are integers that do not descend. Rows behind the last group are zeros.
    The result is [s, m].
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
    """The sums [g, k, m] over the rows of each group of products of x [s, k], y [s, m].

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
    """The number and the rows of each group that has any."""
    start = 0
    for group, end in enumerate(integers(ends)):
        if end > start:
            yield group, slice(start, end)
        start = max(start, end)
