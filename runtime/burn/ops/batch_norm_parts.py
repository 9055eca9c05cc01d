"""Batch norm in training as sums over channels and elementwise functions.

Plans of devices that generate elementwise kernels have these primitives, so that casts,
activations and residuals around a norm are part of its kernels. All statistics [C] are
float32; images may be of half types.
"""

import numpy as np

from burn.ops.layer_norm import average, average_product
from burn.ops.support import Array, accumulate
from burn.primitive import PLAN_ONLY, primitive


@primitive(outputs=3, removable=True, no_gradient=PLAN_ONLY)
def channel_moments(
    x: Array, weight: Array | None = None, *, epsilon: float = 1e-5
) -> tuple[Array, Array, Array]:
    """Return mean, biased variance and scale of each channel of ``x`` [N, C, ...].

    The scale is ``weight`` over the standard deviation.
    """
    work, axes = accumulate(x), _axes(x)
    mean = average(work, axes)
    centered = work - mean
    var = average_product(centered, centered, axes).ravel()
    return mean.ravel(), var, _scale(var, weight, epsilon)


@primitive(outputs=5, removable=True, no_gradient=PLAN_ONLY)
def channel_gradients(
    grad: Array,
    x: Array,
    mean: Array,
    var: Array,
    weight: Array | None = None,
    *,
    epsilon: float = 1e-5,
) -> tuple[Array, Array, Array, Array, Array]:
    """Return ``(shift, slope, scale, of_weight, of_bias)`` [C].

    The first three are operands of :func:`normalize_channels_grad`, the others the
    gradients of weight and bias.
    """
    axes, work = _axes(x), accumulate(grad)
    centered = accumulate(x) - mean.reshape(-1, *(1 for _ in x.shape[2:]))
    shift = average(work, axes).ravel()
    product = average_product(work, centered, axes).ravel()
    inverse = _scale(var, None, epsilon)
    count = np.float32(max(x.size // max(mean.size, 1), 1))
    slope, of_weight = product * inverse * inverse, product * inverse * count
    return shift, slope, _scale(var, weight, epsilon), of_weight, shift * count


@primitive(traceable=True, removable=True, no_gradient=PLAN_ONLY)
def normalize_channels(
    x: Array, mean: Array, scale: Array, bias: Array | None = None
) -> Array:
    """Return the result of batch norm; the others are [C, 1, ...]."""
    out: Array = (accumulate(x) - mean) * scale
    return out if bias is None else out + bias


@primitive(traceable=True, removable=True, no_gradient=PLAN_ONLY)
def normalize_channels_grad(
    grad: Array, x: Array, mean: Array, shift: Array, slope: Array, scale: Array
) -> Array:
    """Return the gradient of ``x`` of batch norm; the last four are [C, 1, ...]."""
    centered = accumulate(x) - mean
    out: Array = (accumulate(grad) - shift - centered * slope) * scale
    return out


def _axes(x: Array) -> tuple[int, ...]:
    return (0, *range(2, x.ndim))


def _scale(var: Array, weight: Array | None, epsilon: float) -> Array:
    scale: Array = 1.0 / np.sqrt(var + np.float32(epsilon))
    return scale if weight is None else scale * weight
