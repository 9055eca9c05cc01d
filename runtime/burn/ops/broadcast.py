"""Broadcasting, and its adjoint, summation over broadcast axes."""

from typing import Any

import numpy as np

from burn.ops import bounds
from burn.ops.casting import cast
from burn.ops.support import Array, accumulate, integers
from burn.primitive import primitive


@primitive(
    traceable=True,
    removable=True,
    shaped_by=1,
    bound=bounds.of_first,
    memory_bound=True,
)
def expand(x: Array, shape: Any) -> Array:
    """Return ``x`` broadcast to ``shape``; an extent of -1 or 1 keeps that of ``x``."""
    target = tuple(1 if n == -1 else n for n in integers(shape))
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, target))


@expand.vjp_reading()
def _(grad: Any, out: Any, x: Any, shape: Any) -> Any:
    return sum_to(grad, shape=x.shape), None


def broadcast_axes(shape: tuple[int, ...], to: tuple[int, ...]) -> tuple[int, ...]:
    """Return the axes of ``to`` along which ``shape`` is broadcast."""
    extra = len(to) - len(shape)
    return tuple(a for a in range(len(to)) if a < extra or shape[a - extra] != to[a])


@primitive(traceable=True, numpy_time=1.0)
def sum_to(x: Array, *, shape: tuple[int, ...]) -> Array:
    """Return ``x`` summed over the axes along which ``shape`` is broadcast to it."""
    axes = broadcast_axes(shape, x.shape)
    total = np.sum(accumulate(x), axis=axes, keepdims=True)
    total = total.astype(x.dtype, copy=False)
    return total.reshape(shape)


@sum_to.vjp_reading()
def _(grad: Any, out: Any, x: Any, *, shape: tuple[int, ...]) -> Any:
    return lambda: expand(grad, x.shape)


def like(grad: Any, operand: Any) -> Any:
    """Return ``grad`` summed to the shape of ``operand`` and converted to its dtype."""
    if grad.shape != operand.shape:
        grad = sum_to(grad, shape=operand.shape)
    if grad.dtype != operand.dtype:
        grad = cast(grad, dtype=operand.dtype)
    return grad
