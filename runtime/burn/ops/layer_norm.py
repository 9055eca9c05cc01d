"""Normalization over features: LayerNorm and RMSNorm, and helpers of all norms.

Statistics are computed in float32 for half types. Each norm is one kernel and its
gradient another; second gradients are those of an equivalent composition.
"""

from math import prod
from typing import Any

import numpy as np

from burn.facts import NORMALIZATION
from burn.ops import bounds
from burn.ops.broadcast import like, sum_to
from burn.ops.composition import Joint, through
from burn.ops.elementwise import sqrt
from burn.ops.reduction import mean, total_product
from burn.ops.support import Array, Axes, accumulate, axes_of, namespace
from burn.primitive import primitive


@primitive(**NORMALIZATION | {"bound": bounds.normalized})
def layer_norm(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    axis: Axes = -1,
    epsilon: float = 1e-5,
) -> Array:
    """Return ``x`` with mean 0 and variance 1 over ``axis``, times weight plus bias.

    ``axis`` is a tuple of axes, or the first of the axes to the last. ``weight`` and
    ``bias`` are broadcast to ``x``.
    """
    out, _ = _standardize(x, feature_axes(axis, x.ndim), epsilon)
    affine(out, weight, bias)
    return out.astype(x.dtype, copy=False)


@layer_norm.vjp
def _(
    grad: Any, out: Any, x: Any, weight: Any = None, bias: Any = None, **static: Any
) -> Any:
    joint = Joint(lambda: layer_norm_grad(grad, x, weight, **static))
    return joint[0], joint[1], lambda: like(grad, bias)


layer_norm.declare_reads({0: (0, 1), 1: (0, 1)})


@primitive(outputs=0, traceable=True)
def layer_norm_grad(
    grad: Array,
    x: Array,
    weight: Array | None = None,
    *,
    axis: Axes = -1,
    epsilon: float = 1e-5,
) -> tuple[Array, ...]:
    """Return the gradients of ``x`` and, if any, ``weight`` of :func:`layer_norm`."""
    axes = feature_axes(axis, x.ndim)
    norm, inverse = _standardize(x, axes, epsilon)
    return _pull(grad, norm, inverse, weight, axes, x.dtype, centered=True)


@layer_norm_grad.vjp
def _(
    grads: Any, outs: Any, outer: Any, x: Any, weight: Any = None, **static: Any
) -> Any:
    return _second_gradients(grads, outer, x, weight, centered=True, **static)


@primitive(traceable=True, removable=True, memory_bound=True, bound=bounds.normalized)
def rms_norm(
    x: Array, weight: Array | None = None, *, axis: Axes = -1, epsilon: float = 1e-5
) -> Array:
    """Return ``x`` divided by its root mean square over ``axis``, times weight.

    ``axis`` is a tuple of axes, or the first of the axes to the last.
    """
    out, _ = _unit(x, feature_axes(axis, x.ndim), epsilon)
    affine(out, weight, None)
    return out.astype(x.dtype, copy=False)


@rms_norm.vjp
def _(grad: Any, out: Any, x: Any, weight: Any = None, **static: Any) -> Any:
    joint = Joint(lambda: rms_norm_grad(grad, x, weight, **static))
    return joint[0], joint[1]


@primitive(outputs=0, traceable=True)
def rms_norm_grad(
    grad: Array,
    x: Array,
    weight: Array | None = None,
    *,
    axis: Axes = -1,
    epsilon: float = 1e-5,
) -> tuple[Array, ...]:
    """Return the gradients of ``x`` and, if present, ``weight`` of :func:`rms_norm`."""
    axes = feature_axes(axis, x.ndim)
    norm, inverse = _unit(x, axes, epsilon)
    return _pull(grad, norm, inverse, weight, axes, x.dtype, centered=False)


@rms_norm_grad.vjp
def _(
    grads: Any, outs: Any, outer: Any, x: Any, weight: Any = None, **static: Any
) -> Any:
    return _second_gradients(grads, outer, x, weight, centered=False, **static)


def feature_axes(axis: Axes, rank: int) -> tuple[int, ...]:
    if isinstance(axis, int):
        return tuple(range(axes_of(axis, rank)[0], rank))
    return axes_of(axis, rank)


def _standardize(
    x: Array, axes: tuple[int, ...], epsilon: float
) -> tuple[Array, Array]:
    """Return normalized ``x`` (new memory), and the inverse standard deviation."""
    work = accumulate(x)
    out = work - average(work, axes)
    inverse = 1.0 / np.sqrt(average_product(out, out, axes) + epsilon)
    out *= inverse
    return out, inverse


def average(x: Array, axes: tuple[int, ...]) -> Array:
    """Return the mean over ``axes``, with these axes kept."""
    outer, inner = _steps(x, axes)
    first = mean.kernel(x, outer, keepdims=True)
    return np.mean(first, axis=inner, keepdims=True) if inner else first


def average_product(x: Array, y: Array, axes: tuple[int, ...]) -> Array:
    """Return the mean of ``x * y``, of equal shape, over ``axes``, which are kept."""
    if axes == (x.ndim - 1,) and x.dtype.kind == "f" and namespace(x) is np:
        total = np.vecdot(x, y)[..., None]
        return total / max(x.shape[-1], 1)
    if namespace(x) is not np:  # einsum calls cuBLAS, which CUDA graphs do not take
        return average(x * y, axes)
    outer, inner = _steps(x, axes)
    total = total_product(x, y, outer)
    if inner:
        total = np.sum(total, axis=inner, keepdims=True)
    return total / max(prod(x.shape[a] for a in axes), 1)


def _steps(x: Array, axes: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return ``axes`` in two steps: those outside of an unreduced axis in memory first.

    One step is several times slower if reduced and unreduced axes alternate in memory.
    """
    stays = [x.strides[a] for a in range(x.ndim) if a not in axes and x.shape[a] > 1]
    outer = tuple(a for a in axes if stays and x.strides[a] > min(stays))
    if not outer:
        return axes, ()
    return outer, tuple(a for a in axes if a not in outer)


def _unit(x: Array, axes: tuple[int, ...], epsilon: float) -> tuple[Array, Array]:
    """Return ``x`` over its root mean square (new memory), and the inverse of that."""
    work = accumulate(x)
    inverse = 1.0 / np.sqrt(average_product(work, work, axes) + epsilon)
    return work * inverse, inverse


def affine(out: Array, weight: Array | None, bias: Array | None) -> None:
    """Scale and shift ``out`` in place."""
    if weight is not None:
        out *= weight.astype(out.dtype, copy=False)
    if bias is not None:
        out += bias.astype(out.dtype, copy=False)


def _pull(
    grad: Array,
    norm: Array,
    inverse: Array,
    weight: Array | None,
    axes: tuple[int, ...],
    dtype: Any,
    *,
    centered: bool,
) -> tuple[Array, ...]:
    """Return the gradients of x and, if present, weight, from normalized ``norm``."""
    grad = accumulate(grad)
    product = grad * norm
    shares: tuple[Array, ...] = ()
    if weight is not None:
        shares = (sum_to.kernel(product, shape=weight.shape).astype(weight.dtype),)
        scale = weight.astype(grad.dtype, copy=False)
        grad = grad * scale
        product *= scale
    slope = average(product, axes)
    np.multiply(norm, slope, out=product)
    np.subtract(grad, product, out=product)
    if centered:
        product -= average(grad, axes)
    product *= inverse
    return (product.astype(dtype, copy=False), *shares)


def _second_gradients(
    grads: Any, outer: Any, x: Any, weight: Any, *, axis: Axes = -1, **options: Any
) -> Any:
    """Return functions for the gradients of ``outer``, ``x`` and ``weight``."""
    axes = feature_axes(axis, x.ndim)

    def body(outer: Any, x: Any, weight: Any) -> Any:
        return _pulled(outer, x, weight, axes, **options)

    joint = Joint(lambda: through(body, grads, outer, x, weight))
    return joint[0], joint[1], joint[2]


def _pulled(
    grad: Any, x: Any, weight: Any, axes: Any, *, centered: bool, epsilon: float = 1e-5
) -> Any:
    """Return :func:`_pull` in primitives; ``centered`` subtracts the mean first."""
    shifted = x - mean(x, axes, keepdims=True) if centered else x
    inverse = 1.0 / sqrt(mean(shifted * shifted, axes, keepdims=True) + epsilon)
    norm = shifted * inverse
    scaled = grad if weight is None else grad * weight
    inner = scaled - norm * mean(scaled * norm, axes, keepdims=True)
    if centered:
        inner = inner - mean(scaled, axes, keepdims=True)
    if weight is None:
        return (inner * inverse,)
    return inner * inverse, like(grad * norm, weight)
