"""Fused primitives, which plans use in place of several others.

``after`` is the epilogue, in order: activations (with their parameters), ``("scale",
factor)``, or ``("add",)`` of ``residual``, which has the shape of the result and its
dtype or float32. An engine may return a number where NaN is correct.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from burn.ops import activation, bounds
from burn.ops.conv import conv, conv_weight_grad
from burn.ops.indexing import add_rows
from burn.ops.matmul import linear, matmul
from burn.ops.norm import batch_norm, group_norm
from burn.ops.pool import max_pool, window_argmax
from burn.ops.support import Array, accumulate
from burn.primitive import PLAN_ONLY, primitive

After: TypeAlias = tuple[tuple[Any, ...], ...]

#: Names of operations, with the indices of their other operands.
Chain: TypeAlias = tuple[tuple[str, int | None], ...]

_LINKS: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "div": np.divide,
    "mul": np.multiply,
    "relu": lambda x, out: np.maximum(x, x.dtype.type(0), out=out),
    "sqrt": np.sqrt,
    "sub": np.subtract,
}
_KERNELS: dict[str, Callable[..., Array]] = {
    "clip": activation.clip.kernel,
    "elu": lambda x, alpha: activation.elu.kernel(x, alpha=alpha),
    "gelu": activation.gelu.kernel,
    "gelu_tanh": partial(activation.gelu.kernel, approximate="tanh"),
    "hard_sigmoid": lambda x, alpha, beta: activation.hard_sigmoid.kernel(
        x, alpha=alpha, beta=beta
    ),
    "hard_swish": activation.hard_swish.kernel,
    "leaky_relu": lambda x, alpha: activation.leaky_relu.kernel(x, alpha=alpha),
    "mish": activation.mish.kernel,
    "relu": activation.relu.kernel,
    "scale": lambda x, factor: x * x.dtype.type(factor),
    "sigmoid": activation.sigmoid.kernel,
    "silu": activation.silu.kernel,
    "softplus": activation.softplus.kernel,
    "tanh": activation.tanh.kernel,
}


@primitive(removable=True, bound=bounds.layer, no_gradient=PLAN_ONLY)
def conv_then(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    residual: Array | None = None,
    *,
    after: After,
    **static: Any,
) -> Array:
    """Return :func:`conv` with the epilogue ``after``, in one pass over memory."""
    return apply_after(conv.kernel(x, weight, bias, **static), residual, after)


@primitive(removable=True, bound=bounds.expanded_layer, no_gradient=PLAN_ONLY)
def expanded_depthwise(
    x: Array,
    weight: Array,
    bias: Array | None,
    depth_weight: Array,
    depth_bias: Array | None,
    *,
    after: After,
    depth_after: After,
    **static: Any,
) -> Array:
    """Return a pointwise :func:`conv` and the depthwise one of its result.

    Each has an epilogue; ``static`` are the options of the depthwise one.
    """
    middle = apply_after(conv.kernel(x, weight, bias), None, after)
    static = {**static, "groups": len(depth_weight)}
    out = conv.kernel(middle, depth_weight, depth_bias, **static)
    return apply_after(out, None, depth_after)


@primitive(removable=True, bound=bounds.layer, no_gradient=PLAN_ONLY)
def linear_then(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    residual: Array | None = None,
    *,
    after: After,
) -> Array:
    """Return :func:`linear` with the epilogue ``after``, in one pass over memory."""
    return apply_after(linear.kernel(x, weight, bias), residual, after)


@primitive(removable=True, bound=bounds.matrices, no_gradient=PLAN_ONLY)
def matmul_then(
    x: Array,
    y: Array,
    bias: None = None,
    residual: Array | None = None,
    *,
    after: After,
) -> Array:
    """Return :func:`matmul` with the epilogue ``after``, in one pass over memory.

    ``residual`` may be broadcast along axes of extent 1.
    """
    return apply_after(matmul.kernel(x, y), residual, after)


@primitive(removable=True, bound=bounds.normalized, no_gradient=PLAN_ONLY)
def group_norm_then(
    x: Array,
    weight: Array,
    bias: Array,
    residual: None = None,
    *,
    after: After,
    **static: Any,
) -> Array:
    """Return :func:`group_norm` with the activations ``after``, in one pass."""
    return apply_after(group_norm.kernel(x, weight, bias, **static), residual, after)


@primitive(traceable=True, removable=True, bound=bounds.shifted, no_gradient=PLAN_ONLY)
def batch_norm_then(
    x: Array,
    mean: Array,
    var: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    after: After,
    epsilon: float = 1e-5,
) -> Array:
    """Return :func:`batch_norm` with a scale and ReLU ``after``, in one pass."""
    out = batch_norm.kernel(x, mean, var, weight, bias, epsilon=epsilon)
    return apply_after(out, None, after)


@primitive(
    traceable=True,
    removable=True,
    infallible=True,
    bound=bounds.chained,
    no_gradient=PLAN_ONLY,
)
def chained(x: Array, *operands: Array, chain: Chain) -> Array:
    """Return ``x`` after a chain of elementwise operations, in one pass over memory.

    A link is the name of an operation, and the index of its other operand in
    ``operands``: of the shape of ``x``, or one number.
    """
    out = x
    for name, index in chain:
        function = _LINKS[name]
        more = () if index is None else (operands[index],)
        out = function(out, *more, out=None if out is x else out)
    return out


@primitive(outputs=2, removable=True, no_gradient=PLAN_ONLY)
def conv_grads(x: Array, grad: Array, **static: Any) -> tuple[Array, Array]:
    """Return :func:`conv_weight_grad`, and the gradient of the convolution's bias."""
    axes = (0, *range(2, grad.ndim))
    return conv_weight_grad.kernel(x, grad, **static), np.sum(grad, axis=axes)


@primitive(outputs=2, removable=True, bound=bounds.of_first, no_gradient=PLAN_ONLY)
def max_pool_with_places(x: Array, **static: Any) -> tuple[Array, Array]:
    """Return :func:`max_pool`, and the :func:`window_argmax` of its result."""
    out = max_pool.kernel(x, **static)
    return out, window_argmax.kernel(x, out, **static)


@primitive(removable=True, infallible=True, no_gradient=PLAN_ONLY)
def rows_added(x: Array, rows: Array, indices: Array) -> Array:
    """Return ``x`` with ``rows`` [..., *x.shape[1:]] added at row ``indices`` [...]."""
    out = x.copy()
    add_rows_at(out, rows, indices)
    return out


def add_rows_at(x: Array, rows: Array, indices: Array) -> None:
    """Execute :func:`rows_added` in place."""
    index = indices.ravel() % max(len(x), 1)
    add_rows(x, index, rows.reshape(index.size, *x.shape[1:]))


@primitive(removable=True, no_gradient=PLAN_ONLY)
def scaled_weight(
    weight: Array, var: Array, scale: Array | None = None, *, epsilon: float
) -> Array:
    """Return ``weight`` [channels, ...] with the scale of a norm folded in."""
    factor = _factor(var, scale, epsilon)
    out = weight * factor.reshape(-1, *(1 for _ in weight.shape[1:]))
    return out.astype(weight.dtype, copy=False)


@primitive(removable=True, no_gradient=PLAN_ONLY)
def shifted_bias(
    bias: Array | None,
    mean: Array,
    var: Array,
    scale: Array | None = None,
    shift: Array | None = None,
    *,
    epsilon: float,
) -> Array:
    """Return the bias [channels] of a layer with the shift of a norm folded in."""
    moved = -accumulate(mean) if bias is None else accumulate(bias) - mean
    out = moved * _factor(var, scale, epsilon)
    out = out if shift is None else out + shift
    return out.astype(mean.dtype, copy=False)


@primitive(removable=True, no_gradient=PLAN_ONLY)
def scaled_columns(
    weight: Array, var: Array, scale: Array | None = None, *, epsilon: float
) -> Array:
    """Return ``weight`` [outputs, channels * each] with an input scale folded in."""
    return weight * _for_columns(_factor(var, scale, epsilon), weight)


@primitive(removable=True, no_gradient=PLAN_ONLY)
def shifted_by_columns(
    bias: Array | None,
    weight: Array,
    mean: Array,
    var: Array,
    scale: Array | None = None,
    shift: Array | None = None,
    *,
    epsilon: float,
) -> Array:
    """Return the bias [outputs] with the shift of a norm of the input folded in."""
    moved = -mean * _factor(var, scale, epsilon)
    moved = moved if shift is None else moved + shift
    out = np.matmul(weight, _for_columns(moved, weight))
    return out if bias is None else out + bias


def _for_columns(channels: Array, weight: Array) -> Array:
    """Return a number for each column of ``weight``, from one for each channel."""
    return np.repeat(channels, weight.shape[1] // len(channels))


def _factor(var: Array, scale: Array | None, epsilon: float) -> Array:
    var = accumulate(var)
    factor = 1 / np.sqrt(var + var.dtype.type(epsilon))
    return factor if scale is None else factor * scale


def apply_after(out: Array, residual: Array | None, after: After) -> Array:
    """Return ``out`` with the epilogue ``after``."""
    dtype = out.dtype
    for name, *numbers in after:
        out = out + residual if name == "add" else _KERNELS[name](out, *numbers)
    return out.astype(dtype, copy=False)
