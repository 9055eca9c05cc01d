"""Optimizer steps of ONNX on one tensor, as pure functions."""

from typing import Any

from burn.ops.casting import cast
from burn.ops.elementwise import maximum, pow, sqrt
from burn.ops.logic import greater, where
from burn.ops.support import Array
from burn.primitive import composite
from burn.tensor import Tensor


@composite(outputs=2)
def adagrad(
    rate: Array,
    count: Array,
    x: Array,
    grad: Array,
    squares: Array,
    *,
    decay_factor: float = 0.0,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
) -> tuple[Tensor, ...]:
    """Return ``x`` and the sum of squared gradients after a step of Adagrad.

    ``rate`` is divided by ``1 + count * decay_factor``, where ``count`` is the number
    of steps before; ``norm_coefficient`` is that of a penalty on half of ``x**2``.
    """
    rate, grad = _prepared(rate, x, grad, norm_coefficient)
    squares = squares + grad * grad
    rate = rate / (cast(count, dtype=x.dtype) * decay_factor + 1.0)
    return x - rate * grad / (sqrt(squares) + epsilon), squares


@composite(outputs=3)
def adam(
    rate: Array,
    count: Array,
    x: Array,
    grad: Array,
    mean: Array,
    squares: Array,
    *,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> tuple[Tensor, ...]:
    """Return ``x`` and the averages of gradients and squares after a step of Adam.

    ``count`` is the number of steps before; averages are corrected for their start if
    it is above 0. ``norm_coefficient`` is that of a penalty on half of ``x**2``,
    ``norm_coefficient_post`` the part that ``x`` loses afterwards.
    """
    rate, grad = _prepared(rate, x, grad, norm_coefficient)
    mean = mean * alpha + grad * (1.0 - alpha)
    squares = squares * beta + grad * grad * (1.0 - beta)
    steps = maximum(cast(count, dtype=x.dtype), 1.0)
    corrected = rate * sqrt(1.0 - pow(beta, steps)) / (1.0 - pow(alpha, steps))
    rate = where(greater(count, 0), corrected, rate)
    x = x - rate * mean / (sqrt(squares) + epsilon)
    return x * (1.0 - norm_coefficient_post), mean, squares


@composite(outputs=2)
def momentum(
    rate: Array,
    count: Array,
    x: Array,
    grad: Array,
    velocity: Array,
    *,
    alpha: float,
    beta: float,
    norm_coefficient: float = 0.0,
    nesterov: bool = False,
) -> tuple[Tensor, ...]:
    """Return ``x`` and its velocity after a step of gradient descent with momentum.

    The velocity is ``alpha`` times itself plus ``beta`` times the gradient, or
    the gradient itself while ``count``, the number of steps before, is 0.
    """
    rate, grad = _prepared(rate, x, grad, norm_coefficient)
    weighted = where(greater(count, 0), grad * beta, grad)
    velocity = velocity * alpha + weighted
    change = grad + velocity * alpha if nesterov else velocity
    return x - rate * change, velocity


def _prepared(rate: Any, x: Any, grad: Any, norm_coefficient: float) -> tuple[Any, Any]:
    """Return ``rate`` in the dtype of ``x``, and ``grad`` plus the L2 penalty's."""
    if norm_coefficient:
        grad = grad + x * norm_coefficient
    return cast(rate, dtype=x.dtype), grad
