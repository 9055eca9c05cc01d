"""Elementwise activation functions.

Formulas are evaluated in IEEE arithmetic, for infinities and NaN too: ``silu`` of minus
infinity is NaN. For finite arguments no intermediate result overflows. Half types are
computed in float32.
"""

from collections.abc import Callable
from functools import wraps
from math import pi, sqrt
from typing import Any, Literal, ParamSpec

import numpy as np

from burn.facts import Facts
from burn.ops import bounds
from burn.ops.broadcast import like
from burn.ops.composition import Joint, through
from burn.ops.elementwise import abs, erf, exp, neg
from burn.ops.logic import where
from burn.ops.support import Array, accumulate, in_dtype_of, pair
from burn.primitive import composite, primitive

P = ParamSpec("P")

SELU_ALPHA, SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875
# gelu with tanh: sqrt(2 / pi), and the coefficient of the cubic term.
_SLOPE, _CUBE = sqrt(2.0 / pi), 0.044715
# erf(x) = tanh(x * P(x ** 2)) within 6e-8: least squares on the error, reweighted.
_ERF = (1.58961237e-07, -5.98570300e-06, 8.97126267e-05, -6.25719572e-04) + (
    *(-1.84383842e-04, 1.02765482e-01, 1.12837971),
)

_ACTIVATION = Facts(traceable=True, removable=True, memory_bound=True, numpy_time=10.0)


def _wide(kernel: Callable[P, Any]) -> Callable[P, Any]:
    """Return ``kernel`` with its first operand converted from half types to float32."""

    @wraps(kernel)
    def run(*args: P.args, **static: P.kwargs) -> Any:
        x: Any = args[0]
        result = kernel(accumulate(x), *args[1:], **static)  # type: ignore[arg-type]
        return result.astype(x.dtype, copy=False)

    return run


@primitive(**_ACTIVATION | {"bound": bounds.of_first, "numpy_time": 2.0})
def relu(x: Array) -> Array:
    """Return ``max(x, 0)``."""
    return np.maximum(x, x.dtype.type(0))


@relu.vjp_reading(results=(0,))
def _(grad: Any, out: Any, x: Any) -> Any:
    return relu_grad(grad, out)


@primitive(traceable=True, removable=True, memory_bound=True)
def relu_grad(grad: Array, out: Array) -> Array:
    """Return ``grad`` where the result ``out`` of :func:`relu` is positive."""
    return np.where(out > 0, grad, grad.dtype.type(0))


@relu_grad.vjp
def _(grad: Any, result: Any, outer: Any, out: Any) -> Any:
    return lambda: relu_grad(grad, out), None


@primitive(**_ACTIVATION | {"bound": bounds.sloped})
@_wide
def leaky_relu(x: Array, *, alpha: float = 0.01) -> Array:
    """Return ``x`` where positive, ``alpha * x`` elsewhere."""
    return np.where(x > 0, x, x * alpha)


@leaky_relu.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any, *, alpha: float = 0.01) -> Any:
    return where(x > 0, grad, grad * alpha)


@primitive(
    **_ACTIVATION | {"removable": False, "bound": bounds.activated, "autocast": "lower"}
)
def prelu(x: Array, slope: Array) -> Array:
    """Return ``x`` where positive, else ``slope * x``; ``slope`` broadcasts to ``x``.

    Raises:
        ValueError: ``slope`` has more axes or elements than ``x``.
    """
    x, slope = pair(x, slope)
    out = np.where(x < 0, x * slope, x)
    if x.ndim and out.shape != x.shape:
        shapes = f"{list(x.shape)}, got {list(slope.shape)}"
        raise ValueError(f"expected a slope that broadcasts to {shapes}")
    return out


@prelu.vjp_reading({0: (0, 1), 1: (0,)})
def _(grad: Any, out: Any, x: Any, slope: Any) -> Any:
    return (
        lambda: like(where(x > 0, grad, grad * slope), x),
        lambda: like(where(x > 0, 0.0, grad * x), slope),
    )


@primitive(traceable=True, memory_bound=True)
def thresholded_relu(x: Array, *, alpha: float = 1.0) -> Array:
    """Return ``x`` where it exceeds ``alpha``, 0 elsewhere."""
    return np.where(x > alpha, x, x.dtype.type(0))


@thresholded_relu.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any, *, alpha: float = 1.0) -> Any:
    return where(x > alpha, grad, 0.0)


@primitive(**_ACTIVATION | {"bound": bounds.activated})
@_wide
def elu(x: Array, *, alpha: float = 1.0) -> Array:
    """Return ``x`` where positive, ``alpha * (exp(x) - 1)`` elsewhere."""
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)) * alpha)


@elu.vjp
def _(grad: Any, out: Any, x: Any, *, alpha: float = 1.0) -> Any:
    return where(x > 0, grad, grad * (out + alpha))


@primitive(**_ACTIVATION | {"bound": bounds.activated})
@_wide
def selu(x: Array, *, alpha: float = SELU_ALPHA, gamma: float = SELU_GAMMA) -> Array:
    """Return ``gamma * x`` if positive, else ``gamma * alpha * (exp(x) - 1)``."""
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0)) * alpha) * gamma


@selu.vjp
def _(
    grad: Any, out: Any, x: Any, *, alpha: float = SELU_ALPHA, gamma: float = SELU_GAMMA
) -> Any:
    return where(x > 0, grad * gamma, grad * (out + alpha * gamma))


@primitive(**_ACTIVATION | {"bound": bounds.activated})
@_wide
def celu(x: Array, *, alpha: float = 1.0) -> Array:
    """Return ``x`` where positive, ``alpha * (exp(x / alpha) - 1)`` elsewhere."""
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0) / alpha) * alpha)


@celu.vjp
def _(grad: Any, out: Any, x: Any, *, alpha: float = 1.0) -> Any:
    return where(x > 0, grad, grad * (out / alpha + 1.0))


@primitive(**_ACTIVATION | {"bound": bounds.up_to_one})
@_wide
def sigmoid(x: Array) -> Array:
    """Return ``1 / (1 + exp(-x))``."""
    # exp may overflow to infinity, whose reciprocal is the limit.
    out = np.exp(-x)
    out += 1
    return 1 / out


@sigmoid.vjp_reading(results=(0,))
def _(grad: Any, out: Any, x: Any) -> Any:
    return grad * out * (1.0 - out)


@primitive(**_ACTIVATION | {"bound": bounds.up_to_one})
@_wide
def tanh(x: Array) -> Array:
    """Return the hyperbolic tangent."""
    return np.tanh(x)


@tanh.vjp_reading(results=(0,))
def _(grad: Any, out: Any, x: Any) -> Any:
    return grad * (1.0 - out * out)


@primitive(**_ACTIVATION | {"bound": bounds.activated})
@_wide
def softplus(x: Array) -> Array:
    """Return ``log(1 + exp(x))``."""
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


@softplus.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any) -> Any:
    return grad * sigmoid(x)


@primitive(traceable=True, removable=True, memory_bound=True)
@_wide
def softsign(x: Array) -> Array:
    """Return ``x / (1 + abs(x))``."""
    return x / (np.abs(x) + 1)


@softsign.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any) -> Any:
    size = abs(x) + 1.0
    return grad / (size * size)


@primitive(**_ACTIVATION | {"bound": bounds.activated})
@_wide
def hard_sigmoid(x: Array, *, alpha: float = 0.2, beta: float = 0.5) -> Array:
    """Return ``alpha * x + beta``, clipped to [0, 1]."""
    return np.clip(x * alpha + beta, 0, 1)


@hard_sigmoid.vjp_reading(results=(0,))
def _(grad: Any, out: Any, x: Any, *, alpha: float = 0.2, beta: float = 0.5) -> Any:
    return where((out > 0) & (out < 1), grad * alpha, 0.0)


@primitive(**_ACTIVATION | {"bound": bounds.activated})
@_wide
def hard_swish(x: Array) -> Array:
    """Return ``x * (x + 3) / 6`` between -3 and 3, 0 below and ``x`` above."""
    return x * np.clip(x / 6 + 0.5, 0, 1)


@hard_swish.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any) -> Any:
    middle = where(x < -3, 0.0, grad * (x / 3.0 + 0.5))
    return where(x > 3, grad, middle)


@primitive(**_ACTIVATION | {"bound": bounds.activated})
@_wide
def silu(x: Array) -> Array:
    """Return ``x * sigmoid(x)``."""
    out = np.exp(-x)
    out += 1
    return x / out


@silu.vjp
def _(grad: Any, out: Any, x: Any) -> Any:
    gate = sigmoid(x)
    return grad * (gate + out * (1.0 - gate))


@composite
def quick_gelu(x: Any) -> Any:
    """Return ``x * sigmoid(1.702 * x)``, CLIP's approximation of GELU."""
    return x * sigmoid(x * 1.702)


@primitive(**_ACTIVATION | {"bound": bounds.activated})
@_wide
def mish(x: Array) -> Array:
    """Return ``x * tanh(softplus(x))``."""
    return x * np.tanh(np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0))


@mish.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any) -> Any:
    gate = tanh(softplus(x))
    return grad * (gate + x * sigmoid(x) * (1.0 - gate * gate))


@primitive(**_ACTIVATION | {"bound": bounds.activated})
@_wide
def gelu(x: Array, *, approximate: Literal["none", "tanh"] = "none") -> Array:
    """Return ``x`` times the standard normal distribution function of ``x``.

    With ``approximate="tanh"`` the result is ``0.5 * x * (1 + tanh(sqrt(2 / pi) * (x +
    0.044715 * x ** 3)))``.
    """
    if approximate == "tanh":
        return x * ((np.tanh((x * x * _CUBE + 1) * x * _SLOPE) + 1) * 0.5)
    return x * ((_erf(x * sqrt(0.5)) + 1) * 0.5)


def _erf(x: Array) -> Array:
    """Return the error function with the precision of 1 + erf(x), but faster."""
    if x.dtype != np.float32:
        return erf.kernel(x)
    x = np.clip(x, -4.2, 4.2)
    square = x * x
    inner = np.full_like(x, _ERF[0])
    for coefficient in _ERF[1:]:
        inner *= square
        inner += coefficient
    inner *= x
    return np.tanh(inner)


@gelu.vjp_reading({0: (0,)})
def _(
    grad: Any, out: Any, x: Any, *, approximate: Literal["none", "tanh"] = "none"
) -> Any:
    return gelu_grad(grad, x, approximate=approximate)


@primitive(traceable=True, memory_bound=True, bound=bounds.gelu_derivative)
@_wide
def gelu_grad(
    grad: Array, x: Array, *, approximate: Literal["none", "tanh"] = "none"
) -> Array:
    """Return the gradient of :func:`gelu`: ``grad`` times its derivative at ``x``."""
    # For large arguments the slope is 0 or 1; clipping avoids infinity times 0.
    x = np.clip(accumulate(x), -40, 40)
    square = x * x
    if approximate == "tanh":
        gate = np.tanh((square * _CUBE + 1) * x * _SLOPE)
        inner = (square * (3 * _CUBE) + 1) * _SLOPE
        return grad * (((1 - gate * gate) * inner * x + gate + 1) * 0.5)
    density = np.exp(square * -0.5) * (1 / sqrt(2 * pi))
    return grad * ((_erf(x * sqrt(0.5)) + 1) * 0.5 + x * density)


@gelu_grad.vjp
def _(grad: Any, out: Any, outer: Any, x: Any, *, approximate: str = "none") -> Any:
    body = _by_tanh if approximate == "tanh" else _by_erf
    joint = Joint(lambda: through(body, (grad,), outer, x))
    return joint[0], joint[1]


def _by_tanh(grad: Any, x: Any) -> Any:
    square = x * x
    gate = tanh((square * _CUBE + 1.0) * x * _SLOPE)
    inner = (square * (3.0 * _CUBE) + 1.0) * _SLOPE
    return grad * ((1.0 - gate * gate) * inner * x + gate + 1.0) * 0.5


def _by_erf(grad: Any, x: Any) -> Any:
    density = exp(neg(x * x) * 0.5) * (1.0 / sqrt(2.0 * pi))
    return grad * ((erf(x * sqrt(0.5)) + 1.0) * 0.5 + x * density)


@primitive(
    traceable=True, memory_bound=True, bound=bounds.largest_of_all, numpy_time=2.0
)
def clip(x: Array, low: Array | None = None, high: Array | None = None) -> Array:
    """Return ``min(max(x, low), high)``; None is no bound; ``x`` may be a number."""
    if isinstance(x, int | float):
        x = _as_array(x, low, high)
    out = None
    if low is not None:
        out = np.maximum(x, in_dtype_of(x, low))
    if high is not None:
        bound = in_dtype_of(x, high)
        if out is None or not out.ndim or bound.ndim:
            return np.minimum(x if out is None else out, bound)
        np.minimum(out, bound, out=out)
    return x if out is None else out


def _as_array(x: float, *others: Any) -> Array:
    """Return a Python number as an array, of the dtype of the first of ``others``."""
    arrays = (y for y in others if y is not None and not isinstance(y, int | float))
    return pair(x, next(arrays, 0))[0]


@clip.vjp_reading({0: (0, 1, 2), 1: (0, 1, 2), 2: (0, 1, 2)})
def _(grad: Any, out: Any, x: Any, low: Any = None, high: Any = None) -> Any:
    def of_x() -> Any:
        share = grad  # 0 at a bound that is a number, as PyTorch's
        if low is not None:
            inside = x > low if isinstance(low, int | float) else x >= low
            share = where(inside, share, 0.0)
        if high is not None:
            inside = x < high if isinstance(high, int | float) else x <= high
            share = where(inside, share, 0.0)
        return like(share, x)

    def of_low() -> Any:
        share = where(x < low, grad, 0.0)
        return like(share if high is None else where(high < low, 0.0, share), low)

    def of_high() -> Any:
        over = x if low is None else where(x < low, low, x)
        return like(where(over > high, grad, 0.0), high)

    return of_x, of_low, of_high


@primitive(traceable=True, memory_bound=True)
@_wide
def shrink(x: Array, *, bias: float = 0.0, lambd: float = 0.5) -> Array:
    """Return ``x`` moved towards 0 by ``bias``; 0 if ``abs(x) <= lambd``."""
    zero = x.dtype.type(0)
    return np.where(x > lambd, x - bias, np.where(x < -lambd, x + bias, zero))


@shrink.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any, *, bias: float = 0.0, lambd: float = 0.5) -> Any:
    return where((x > lambd) | (x < -lambd), grad, 0.0)
