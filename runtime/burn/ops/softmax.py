"""Softmax and its logarithm, over one or several axes."""

from typing import Any

import numpy as np

from burn.facts import NORMALIZATION
from burn.ops import bounds
from burn.ops.broadcast import expand
from burn.ops.elementwise import exp
from burn.ops.reduction import sum as sum_
from burn.ops.shape import reshape
from burn.ops.support import Array, Axes, accumulate, axes_of
from burn.primitive import primitive


@primitive(**NORMALIZATION | {"bound": bounds.up_to_one})
def softmax(x: Array, *, axis: Axes = -1) -> Array:
    """Return ``exp(x)`` divided by its sum over ``axis``: an integer or a tuple.

    The maximum is subtracted first, so a row with infinity is NaN.
    """
    out, total, _ = _exponentials(accumulate(x), axis)
    out /= total
    return out.astype(x.dtype, copy=False)


@softmax.vjp
def _(grad: Any, out: Any, x: Any, *, axis: Axes = -1) -> Any:
    return softmax_grad(grad, out, axis=axis)


softmax.declare_reads(results=(0,))


@primitive(traceable=True)
def softmax_grad(grad: Array, out: Array, *, axis: Axes = -1) -> Array:
    """Return the gradient of :func:`softmax` from its result ``out``."""
    grad, work = accumulate(grad), accumulate(out)
    product = grad * work
    total = np.sum(product, axis=axes_of(axis, out.ndim), keepdims=True)
    np.subtract(grad, total, out=product)
    product *= work
    return product.astype(out.dtype, copy=False)


@softmax_grad.vjp
def _(grad: Any, result: Any, outer: Any, out: Any, *, axis: Axes = -1) -> Any:
    # result = (outer - sum(outer * out)) * out
    inner = sum_(grad * out, axis, keepdims=True)
    return (
        lambda: softmax_grad(grad, out, axis=axis),
        lambda: grad * (outer - sum_(outer * out, axis, keepdims=True)) - outer * inner,
    )


@primitive(**NORMALIZATION)
def log_softmax(x: Array, *, axis: Axes = -1) -> Array:
    """Return the logarithm of :func:`softmax`."""
    work = accumulate(x)
    _, total, largest = _exponentials(work, axis)
    out = work - largest
    out -= np.log(total)
    return out.astype(x.dtype, copy=False)


@log_softmax.vjp
def _(grad: Any, out: Any, x: Any, *, axis: Axes = -1) -> Any:
    return grad - exp(out) * sum_(grad, axis, keepdims=True)


log_softmax.declare_reads(results=(0,))


@primitive(traceable=True)
def logsumexp(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Return the logarithm of the sum of ``exp(x)`` over ``axis``, or over all axes."""
    _, total, largest = _exponentials(accumulate(x), axis)
    # Infinity minus itself is NaN, but the sum is infinite.
    out = np.where(largest == np.inf, largest, np.log(total) + largest)
    if not keepdims:
        out = np.squeeze(out, axes_of(axis, x.ndim))
    return out.astype(x.dtype, copy=False)


@logsumexp.vjp
def _(grad: Any, out: Any, x: Any, axis: Axes = None, *, keepdims: bool = False) -> Any:
    axes = axes_of(axis, x.ndim)
    shape = tuple(1 if a in axes else n for a, n in enumerate(x.shape))
    grad, out = reshape(grad, shape), reshape(out, shape)
    return expand(grad, x.shape) * exp(x - out), None


def _exponentials(x: Array, axis: Axes) -> tuple[Array, Array, Array]:
    """Return ``exp(x - maximum)``, its sums, and the maxima over ``axis``."""
    axes = axes_of(axis, x.ndim)
    if x.size:
        largest = np.max(x, axis=axes, keepdims=True)
    else:
        largest = np.sum(x, axis=axes, keepdims=True)
    # A row of minus infinity has no finite element to subtract: its sum is 0.
    largest = np.where(largest == -np.inf, x.dtype.type(0), largest)
    out = np.exp(x - largest)
    return out, np.sum(out, axis=axes, keepdims=True), largest
