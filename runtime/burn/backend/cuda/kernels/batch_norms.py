"""Batch norm in training, and its gradient: sums over channels, and one kernel.

Images are channels-last, so that a channel is a column of a matrix.
"""

from functools import cache
from typing import Any

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.column_sums import FLOATS, Vectors, column_sums
from burn.backend.cuda.kernels.convolution.layouts import Layout
from burn.backend.cuda.kernels.elementwise.elements import elements
from burn.ops.batch_norm_parts import (
    channel_gradients as channel_gradients_op,
    channel_moments as channel_moments_op,
    normalize_channels,
    normalize_channels_grad,
)
from burn.ops.elements import Element, Operand
from burn.ops.norm import (
    batch_norm_grad as batch_norm_grad_op,
    batch_norm_train as batch_norm_train_op,
)
from burn.ops.support import Array
from burn.plan.passes.symbolic_execution import element_of
from burn.primitive import Primitive

_LAST = Layout(channels_last=True)
_MOST = 2**31 - 1


@batch_norm_train_op.on(Cuda)
def batch_norm_train(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    epsilon: float = 1e-5,
) -> tuple[Array, Array, Array]:
    """Compute :func:`burn.ops.batch_norm_train` in five kernels."""
    if x.dtype != np.float32 or not _is_supported(x, weight, bias):
        parts: tuple[Array, Array, Array]
        parts = batch_norm_train_op.kernel(x, weight, bias, epsilon=epsilon)
        return parts
    mean, var, scale = channel_moments(x, weight, epsilon=epsilon)
    vectors = (mean, scale) if bias is None else (mean, scale, bias)
    return _applied(normalize_channels, (_LAST.of(x),), vectors), mean, var


@batch_norm_grad_op.on(Cuda)
def batch_norm_grad(
    grad: Array,
    x: Array,
    mean: Array,
    var: Array,
    weight: Array | None = None,
    *,
    epsilon: float = 1e-5,
) -> tuple[Array, Array, Array]:
    """Compute :func:`burn.ops.batch_norm_grad` in three kernels."""
    is_single = grad.dtype == x.dtype == np.float32
    if not is_single or not _is_supported(x, mean, var, weight):
        parts: tuple[Array, Array, Array]
        parts = batch_norm_grad_op.kernel(grad, x, mean, var, weight, epsilon=epsilon)
        return parts
    sums = channel_gradients(grad, x, mean, var, weight, epsilon=epsilon)
    shift, slope, scale, of_weight, of_bias = sums
    images = (_LAST.of(grad), _LAST.of(x))
    vectors = (mean, shift, slope, scale)
    return _applied(normalize_channels_grad, images, vectors), of_weight, of_bias


@channel_moments_op.on(Cuda)
def channel_moments(
    x: Array, weight: Array | None = None, *, epsilon: float = 1e-5
) -> tuple[Array, Array, Array]:
    """Compute :func:`burn.ops.batch_norm_parts.channel_moments` in four kernels."""
    if not _is_supported(x, weight):
        parts: tuple[Array, Array, Array]
        parts = channel_moments_op.kernel(x, weight, epsilon=epsilon)
        return parts
    x, channels = _LAST.of(x), x.shape[1]
    factor = channels / x.size
    mean = column_sums("sum", x, channels, factor=factor)[0]
    vectors = Vectors(mean, weight=weight)
    var, scale = column_sums(
        "squares", x, channels, None, vectors, factor=factor, epsilon=epsilon
    )
    return mean, var, scale


@channel_gradients_op.on(Cuda)
def channel_gradients(
    grad: Array,
    x: Array,
    mean: Array,
    var: Array,
    weight: Array | None = None,
    *,
    epsilon: float = 1e-5,
) -> Any:
    """Compute :func:`burn.ops.batch_norm_parts.channel_gradients` in two kernels."""
    if grad.dtype not in FLOATS or not _is_supported(x, mean, var, weight):
        return channel_gradients_op.kernel(grad, x, mean, var, weight, epsilon=epsilon)
    x, grad, channels = _LAST.of(x), _LAST.of(grad), x.shape[1]
    vectors = Vectors(mean, var=var, weight=weight)
    factor = channels / x.size
    sums = column_sums(
        "products", x, channels, grad, vectors, factor=factor, epsilon=epsilon
    )
    return tuple(sums)


def _is_supported(x: Array, *vectors: Array | None) -> bool:
    """Return whether ``x`` has channels of floats, and the vectors are float32."""
    if x.dtype not in FLOATS or x.ndim < 2 or not 0 < x.size <= _MOST:
        return False
    return all(vector is None or vector.dtype == np.float32 for vector in vectors)


def _applied(
    primitive: Primitive[..., Any], images: tuple[Array, ...], vectors: Any
) -> Array:
    """Return an elementwise ``primitive`` of images and vectors [C] in one kernel."""
    shape = (-1, *(1 for _ in images[0].shape[2:]))
    beside = [vector.reshape(shape) for vector in vectors]
    return elements(
        *images, *beside, element=_element(primitive, len(images), len(beside))
    )


@cache
def _element(primitive: Primitive[..., Any], images: int, vectors: int) -> Element:
    """Return the expression of ``primitive`` for operands of float32."""
    single = np.dtype(np.float32)
    operands = tuple(Operand(n, single) for n in range(images + vectors))
    described = element_of(primitive, operands, {}, [((1,), single)] * len(operands))
    assert described is not None
    return described[0]
