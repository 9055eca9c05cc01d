"""Losses for regression."""

import math

from burn import ops
from burn.loss.reduction import check_same_shape, reduced
from burn.tensor import Tensor


def mse_loss(x: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Return the squared difference of two tensors of the same shape.

    Raises:
        ValueError: the shapes differ, or there is no such reduction.
    """
    check_same_shape(x, target)
    difference = x - target
    return reduced(difference * difference, reduction)


def l1_loss(x: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Return the absolute difference of two tensors of the same shape.

    Raises:
        ValueError: the shapes differ, or there is no such reduction.
    """
    check_same_shape(x, target)
    return reduced(ops.abs(x - target), reduction)


def huber_loss(
    x: Tensor, target: Tensor, *, delta: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """Return half of the squared difference, linear above ``delta``.

    Raises:
        ValueError: the shapes differ, ``delta`` is not positive, or there is no such
            reduction.
    """
    if delta <= 0.0:
        raise ValueError(f"expected delta > 0, got {delta}")
    check_same_shape(x, target)
    size = ops.abs(x - target)
    small = ops.minimum(size, delta)
    return reduced(small * (size - small * 0.5), reduction)


def smooth_l1_loss(
    x: Tensor, target: Tensor, *, beta: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """Return the Huber loss over ``beta``; the absolute difference for ``beta=0``.

    Raises:
        ValueError: the shapes differ, ``beta`` is negative, or there is no such
            reduction.
    """
    if beta < 0.0:
        raise ValueError(f"expected beta >= 0, got {beta}")
    if beta == 0.0:
        return l1_loss(x, target, reduction=reduction)
    return huber_loss(x, target, delta=beta, reduction=reduction) / beta


def poisson_nll_loss(
    x: Tensor,
    target: Tensor,
    *,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log likelihood of counts under a Poisson distribution.

    ``x`` is the logarithm of the rate, or without ``log_input`` the rate. ``full`` adds
    Stirling's approximation of the constant for counts above 1.

    Raises:
        ValueError: the shapes differ, or there is no such reduction.
    """
    check_same_shape(x, target)
    loss = ops.exp(x) - target * x if log_input else x - target * ops.log(x + eps)
    if full:
        large = target > 1.0
        n = ops.where(large, target, 1.0)
        stirling = n * ops.log(n) - n + ops.log(n * (2.0 * math.pi)) * 0.5
        loss = loss + ops.where(large, stirling, 0.0)
    return reduced(loss, reduction)


def gaussian_nll_loss(
    x: Tensor,
    target: Tensor,
    var: Tensor,
    *,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log likelihood of normal distributions ``x`` and ``var``.

    Variances below ``eps`` count as ``eps``, without a gradient of that. ``full`` adds
    the constant.

    Raises:
        ValueError: the shapes differ, or there is no such reduction.
    """
    check_same_shape(x, target)
    bounded = var + (ops.maximum(var, eps) - var).detach()
    difference = x - target
    loss = (ops.log(bounded) + difference * difference / bounded) * 0.5
    if full:
        loss = loss + 0.5 * math.log(2.0 * math.pi)
    return reduced(loss, reduction)
