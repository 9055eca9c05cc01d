"""Trigonometric and hyperbolic functions and their inverses."""

from typing import Any

import numpy as np

from burn.ops.broadcast import like
from burn.ops.elementwise import sqrt
from burn.ops.logic import where
from burn.ops.support import Array, pair
from burn.primitive import primitive


@primitive(traceable=True, removable=True, memory_bound=True)
def sin(x: Array) -> Array:
    """Return the sine; radians."""
    return np.sin(x)


@sin.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any) -> Any:
    return grad * cos(x)


@primitive(traceable=True, removable=True, memory_bound=True)
def cos(x: Array) -> Array:
    """Return the cosine; radians."""
    return np.cos(x)


@cos.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any) -> Any:
    return -grad * sin(x)


@primitive(traceable=True, removable=True, memory_bound=True)
def tan(x: Array) -> Array:
    """Return the tangent; radians."""
    return np.tan(x)


@tan.vjp_reading(results=(0,))
def _(grad: Any, out: Any, x: Any) -> Any:
    return grad * (1.0 + out * out)


@primitive(traceable=True, removable=True, memory_bound=True)
def asin(x: Array) -> Array:
    """Return the arcsine in [-pi/2, pi/2]."""
    return np.arcsin(x)


@asin.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any) -> Any:
    return grad / sqrt((1.0 - x) * (1.0 + x))


@primitive(traceable=True, removable=True, memory_bound=True)
def acos(x: Array) -> Array:
    """Return the arccosine in [0, pi]."""
    return np.arccos(x)


@acos.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any) -> Any:
    return -grad / sqrt((1.0 - x) * (1.0 + x))


@primitive(traceable=True, removable=True, memory_bound=True)
def atan(x: Array) -> Array:
    """Return the arctangent in (-pi/2, pi/2)."""
    return np.arctan(x)


@atan.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any) -> Any:
    return grad / (1.0 + x * x)


@primitive(traceable=True, removable=True, memory_bound=True)
def sinh(x: Array) -> Array:
    """Return the hyperbolic sine."""
    return np.sinh(x)


@sinh.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any) -> Any:
    return grad * cosh(x)


@primitive(traceable=True, removable=True, memory_bound=True)
def cosh(x: Array) -> Array:
    """Return the hyperbolic cosine."""
    return np.cosh(x)


@cosh.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any) -> Any:
    return grad * sinh(x)


@primitive(traceable=True, removable=True, memory_bound=True)
def asinh(x: Array) -> Array:
    """Return the inverse hyperbolic sine."""
    return np.arcsinh(x)


@asinh.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any) -> Any:
    return grad / sqrt(x * x + 1.0)


@primitive(traceable=True, removable=True, memory_bound=True)
def acosh(x: Array) -> Array:
    """Return the nonnegative inverse hyperbolic cosine."""
    return np.arccosh(x)


@acosh.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any) -> Any:
    return grad / sqrt((x - 1.0) * (x + 1.0))


@primitive(traceable=True, removable=True, memory_bound=True)
def atanh(x: Array) -> Array:
    """Return the inverse hyperbolic tangent."""
    return np.arctanh(x)


@atanh.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any) -> Any:
    return grad / ((1.0 - x) * (1.0 + x))


@primitive(traceable=True, infallible=True, memory_bound=True)
def atan2(y: Array, x: Array) -> Array:
    """Return the angle of (``x``, ``y``) from -pi to pi, with signed zeros."""
    return np.arctan2(*pair(y, x))


@atan2.vjp_reading({0: (0, 1), 1: (0, 1)})
def _(grad: Any, out: Any, y: Any, x: Any) -> Any:
    """Return the gradients, which are 0 at the origin."""
    total = x * x + y * y
    scale = where(total == 0, 0.0, grad / where(total == 0, 1.0, total))
    return lambda: like(scale * x, y), lambda: like(-scale * y, x)
