"""Normalization of channels: batch, group, instance and local response."""

from typing import Any

import numpy as np

from burn.facts import NORMALIZATION
from burn.ops import bounds
from burn.ops.broadcast import expand, like
from burn.ops.composition import Joint, through
from burn.ops.elementwise import div, mul, pow, sqrt
from burn.ops.layer_norm import (
    affine,
    average,
    average_product,
    layer_norm,
    layer_norm_grad,
)
from burn.ops.pool import window_sum
from burn.ops.reduction import mean as _mean, sum as sum_
from burn.ops.shape import reshape, squeeze, unsqueeze
from burn.ops.support import Array, accumulate
from burn.primitive import composite, primitive
from burn.tensor import Tensor


@primitive(**NORMALIZATION | {"bound": bounds.shifted})
def batch_norm(
    x: Array,
    mean: Array,
    var: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    epsilon: float = 1e-5,
) -> Array:
    """Return ``x`` [N, C, ...] normalized by the statistics [C].

    ``(x - mean) / sqrt(var + epsilon) * weight + bias``, as one scale and one shift.
    """
    scale = 1.0 / np.sqrt(accumulate(var) + epsilon)
    if weight is not None:
        scale = scale * accumulate(weight)
    shift = -accumulate(mean) * scale
    if bias is not None:
        shift = shift + accumulate(bias)
    work = accumulate(x)
    kind = work.dtype
    out = work * _beside(scale, x).astype(kind, copy=False)
    out += _beside(shift, x).astype(kind, copy=False)
    return out.astype(x.dtype, copy=False)


@batch_norm.vjp_reading(
    {0: (2, 3), 1: (2, 3), 2: (0, 1, 2, 3), 3: (0, 1, 2, 3), 4: (2, 3)}
)
def _(
    grad: Any,
    out: Any,
    x: Any,
    mean: Any,
    var: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    epsilon: float = 1e-5,
) -> Any:
    axes = (0, *range(2, x.ndim))
    inverse = 1.0 / sqrt(var + epsilon)
    scale = inverse if weight is None else inverse * weight
    moment = Joint(lambda: (sum_(grad * (x - _beside(mean, x)), axes),))[0]

    def of_var() -> Any:
        return like(moment() * scale * inverse * inverse * -0.5, var)

    return (
        lambda: like(grad * _beside(scale, x), x),
        lambda: like(-sum_(grad, axes) * scale, mean),
        of_var,
        lambda: like(moment() * inverse, weight),
        lambda: like(sum_(grad, axes), bias),
    )


@primitive(outputs=3, traceable=True, removable=True, memory_bound=True)
def batch_norm_train(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    epsilon: float = 1e-5,
) -> tuple[Array, Array, Array]:
    """Return ``x`` [N, C, ...] normalized by its own statistics, and these.

    The results are ``(y, mean, var)``; ``var`` [C] is the biased variance.
    """
    work, axes = accumulate(x), _around(x)
    mean = average(work, axes)
    out = work - mean
    var = average_product(out, out, axes)
    scale = 1.0 / np.sqrt(var + epsilon)
    if weight is not None:
        scale *= _beside(accumulate(weight), x)
    out *= scale.astype(out.dtype, copy=False)
    affine(out, None, None if bias is None else _beside(bias, x))
    return out.astype(x.dtype, copy=False), mean.ravel(), var.ravel()


@batch_norm_train.vjp_of_parts
def _(
    grad: Any, out: Any, x: Any, weight: Any = None, bias: Any = None, **static: Any
) -> Any:
    of_y, of_mean, of_var = grad
    joint = Joint(lambda: batch_norm_grad(of_y, x, out[1], out[2], weight, **static))

    def of_x() -> Any:
        shares = [] if of_y is None else [joint[0]()]
        count = max(x.size // max(out[1].size, 1), 1)
        if of_mean is not None:
            shares.append(_beside(of_mean, x) / count)
        if of_var is not None:
            centered = x - _beside(out[1], x)
            shares.append(2.0 * centered * _beside(of_var, x) / count)
        total = sum(shares[1:], shares[0])
        return like(total if of_y is not None else expand(total, x.shape), x)

    if of_y is None:
        return (of_x,)
    return of_x, lambda: like(joint[1](), weight), lambda: like(joint[2](), bias)


batch_norm_train.declare_reads({0: (0, 1), 1: (0, 1), 2: (0, 1)}, results=(1, 2))


@primitive(outputs=3, traceable=True, removable=True)
def batch_norm_grad(
    grad: Array,
    x: Array,
    mean: Array,
    var: Array,
    weight: Array | None = None,
    *,
    epsilon: float = 1e-5,
) -> tuple[Array, Array, Array]:
    """Return the gradients ``(x, weight, bias)`` of :func:`batch_norm_train`.

    ``mean`` and ``var`` are its other results; gradients flow through ``x`` only.
    """
    axes, work = _around(x), accumulate(grad)
    inverse = 1.0 / np.sqrt(var + epsilon)
    out = accumulate(x) - _beside(mean, x)
    out *= _beside(inverse, x)
    slope, shift = average_product(work, out, axes), average(work, axes)
    count = max(x.size // max(mean.size, 1), 1)
    out *= -slope
    out += work
    out -= shift
    out *= _beside(inverse if weight is None else inverse * weight, x)
    return out.astype(x.dtype, copy=False), slope.ravel() * count, shift.ravel() * count


@batch_norm_grad.vjp
def _(
    grads: Any,
    outs: Any,
    outer: Any,
    x: Any,
    mean: Any,
    var: Any,
    weight: Any = None,
    *,
    epsilon: float = 1e-5,
) -> Any:
    axes = _around(x)

    def body(outer: Any, x: Any, weight: Any) -> Any:
        centered = x - _mean(x, axes, keepdims=True)
        inverse = 1.0 / sqrt(_mean(centered * centered, axes, keepdims=True) + epsilon)
        norm = centered * inverse
        slope = _mean(outer * norm, axes, keepdims=True)
        shift = _mean(outer, axes, keepdims=True)
        scale = inverse if weight is None else inverse * _beside(weight, x)
        of_bias = sum_(outer, axes)
        return (outer - shift - norm * slope) * scale, sum_(outer * norm, axes), of_bias

    joint = Joint(lambda: through(body, grads, outer, x, weight))
    return joint[0], joint[1], None, None, joint[2]


@primitive(**NORMALIZATION | {"bound": bounds.normalized})
def group_norm(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    groups: int,
    epsilon: float = 1e-5,
) -> Array:
    """Return ``x`` [N, C, ...] normalized over each group of channels and all space.

    ``weight`` and ``bias`` are [C].
    """
    axes, inner, parts = _of_groups(groups, x, weight, bias)
    out = layer_norm.kernel(x.reshape(inner), *parts, axis=axes, epsilon=epsilon)
    return out.reshape(x.shape)


@group_norm.vjp_reading({0: (0, 1), 1: (0, 1), 2: (1,)})
def _(
    grad: Any, out: Any, x: Any, weight: Any = None, bias: Any = None, **static: Any
) -> Any:
    axes, inner, (scale, _) = _of_groups(static.pop("groups"), x, weight)
    joint = Joint(
        lambda: layer_norm_grad(
            *(reshape(grad, inner), reshape(x, inner), scale), axis=axes, **static
        )
    )
    return (
        lambda: reshape(joint[0](), x.shape),
        lambda: reshape(joint[1](), weight.shape),
        lambda: like(sum_(grad, (0, *range(2, x.ndim))), bias),
    )


def _of_groups(
    groups: int, x: Any, weight: Any, bias: Any = None
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[Any, Any]]:
    """Return the axes of a group norm, the grouped shape, and its weight and bias.

    Raises:
        ValueError: weight or bias does not have one number per channel.
    """
    batch, channels, *space = x.shape
    within = channels // groups
    for part in (weight, bias):
        if part is not None and tuple(part.shape) != (channels,):
            raise ValueError(
                f"expected a weight and a bias for each of {channels} channels, "
                f"got {list(part.shape)}"
            )
    line = (groups, within, *(1 for _ in space))
    scale, shift = (
        None if part is None else part.reshape(line) for part in (weight, bias)
    )
    axes = tuple(range(2, len(space) + 3))
    return axes, (batch, groups, within, *space), (scale, shift)


@composite
def instance_norm(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    epsilon: float = 1e-5,
) -> Tensor:
    """Return ``x`` [N, C, *size] normalized over space; weight and bias are [C]."""
    return group_norm(x, weight, bias, groups=max(x.shape[1], 1), epsilon=epsilon)


@composite
def lrn(
    x: Array, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Tensor:
    """Return ``x`` [N, C, ...] over a power of the mean square of ``size`` channels.

    ``x / (bias + alpha / size * sum) ** beta``, where the sum takes ``(size - 1) // 2``
    channels before and ``size // 2`` after; those that do not exist are 0.
    """
    still = (1,) * (len(x.shape) - 2)
    total = mul(x, x)
    if 0 not in x.shape:  # no window fits an axis without elements
        total = window_sum(
            unsqueeze(total, 1),
            kernel_size=(size, *still),
            padding=(((size - 1) // 2, size // 2), *((0, 0) for _ in still)),
        )
        total = squeeze(total, 1)
    return div(x, pow(total * (alpha / size) + bias, beta))


def _around(x: Any) -> tuple[int, ...]:
    """Return every axis but the channel axis."""
    return (0, *range(2, x.ndim))


def _beside(vector: Any, x: Any) -> Any:
    """Return ``vector`` [C] reshaped to broadcast along axis 1 of ``x``."""
    shape = (-1, *(1 for _ in x.shape[2:]))
    return vector.reshape(shape)
