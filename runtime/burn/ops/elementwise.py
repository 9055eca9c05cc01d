"""Elementwise arithmetic and mathematical functions, with broadcasting."""

import math
from typing import Any

import numpy as np

from burn import dtypes
from burn.facts import Facts
from burn.ops import bounds
from burn.ops.broadcast import like
from burn.ops.casting import cast
from burn.ops.logic import where
from burn.ops.support import Array, namespace, numeric, pair
from burn.primitive import primitive

_ARITHMETIC = Facts(traceable=True, infallible=True, memory_bound=True, numpy_time=2.0)


@primitive(**_ARITHMETIC | {"bound": bounds.sum_of_all})
def add(x: Array, y: Array) -> Array:
    """Return ``x + y``."""
    return np.add(*pair(x, y))


@add.vjp
def _(grad: Any, out: Any, x: Any, y: Any) -> Any:
    return lambda: like(grad, x), lambda: like(grad, y)


add.declare_reads()


@primitive(**_ARITHMETIC | {"bound": bounds.sum_of_all})
def sub(x: Array, y: Array) -> Array:
    """Return ``x - y``."""
    return np.subtract(*numeric(x, y))


@sub.vjp
def _(grad: Any, out: Any, x: Any, y: Any) -> Any:
    return lambda: like(grad, x), lambda: like(-grad, y)


sub.declare_reads()


@primitive(**_ARITHMETIC | {"bound": bounds.product})
def mul(x: Array, y: Array) -> Array:
    """Return ``x * y``."""
    return np.multiply(*pair(x, y))


@mul.vjp
def _(grad: Any, out: Any, x: Any, y: Any) -> Any:
    return lambda: like(grad * y, x), lambda: like(grad * x, y)


mul.declare_reads({0: (1,), 1: (0,)})


@primitive(**_ARITHMETIC | {"bound": bounds.quotient})
def div(x: Array, y: Array) -> Array:
    """Return ``x / y``; integers are divided in float32."""
    x, y = numeric(x, y)
    if x.dtype.kind in "iu" and not dtypes.is_float(x.dtype):
        x, y = x.astype(np.float32), y.astype(np.float32)
    return np.divide(x, y)


@div.vjp
def _(grad: Any, out: Any, x: Any, y: Any) -> Any:
    return lambda: like(grad / y, x), lambda: like(-grad * out / y, y)


div.declare_reads({0: (1,), 1: (1,)}, results=(0,))


@primitive(traceable=True, infallible=True, no_gradient="piecewise constant")
def floor_div(x: Array, y: Array) -> Array:
    """Return the quotient rounded towards minus infinity."""
    return np.floor_divide(*numeric(x, y))


@primitive(traceable=True, infallible=True, no_gradient="integers have no gradient")
def trunc_div(x: Array, y: Array) -> Array:
    """Return the quotient of integers rounded towards zero."""
    x, y = numeric(x, y)
    quotient = np.floor_divide(x, y)
    if x.dtype.kind == "u":
        return quotient
    # NumPy returns scalars, not arrays, for operands of rank 0.
    inexact = namespace(x).asarray(quotient * y != x)
    return quotient + (inexact & ((x < 0) != (y < 0))).astype(x.dtype)


@primitive(traceable=True, infallible=True, memory_bound=True)
def remainder(x: Array, y: Array) -> Array:
    """Return ``x`` modulo ``y`` with the sign of ``y``, as Python's ``%``."""
    return np.remainder(*numeric(x, y))


@remainder.vjp_reading({1: (0, 1)})
def _(grad: Any, out: Any, x: Any, y: Any) -> Any:
    return lambda: like(grad, x), lambda: like(-grad * floor(x / y), y)


@primitive(traceable=True, infallible=True, memory_bound=True)
def fmod(x: Array, y: Array) -> Array:
    """Return ``x`` modulo ``y`` with the sign of ``x``, as C's ``fmod``."""
    return np.fmod(*numeric(x, y))


@fmod.vjp_reading({1: (0, 1)})
def _(grad: Any, out: Any, x: Any, y: Any) -> Any:
    return lambda: like(grad, x), lambda: like(-grad * trunc(x / y), y)


@primitive(traceable=True, infallible=True, memory_bound=True)
def pow(x: Array, y: Array) -> Array:
    """Return ``x`` to the power ``y``; integers stay integers, rounded towards zero."""
    squares = type(y) in (int, float) and y == 2
    x, y = numeric(x, y)
    if squares:
        return np.square(x)
    if x.dtype.kind != "i" or not np.any(y < 0):
        return np.power(x, y)
    whole = np.power(x, np.maximum(y, 0))
    # Negative powers truncate to 0, except those of 1 and -1.
    unit = np.where(x == -1, 1 - 2 * (y & 1), x == 1)
    return np.where(y < 0, unit, whole).astype(x.dtype)


@pow.vjp
def _(grad: Any, out: Any, x: Any, y: Any) -> Any:
    def of_x() -> Any:
        if isinstance(y, int | float):
            return like(grad * y * pow(x, y - 1), x) if y else like(grad * 0.0, x)
        # The slope is 0 if the exponent is 0, even at 0.
        less = where(y == 0, 1, y - 1)
        return like(grad * y * pow(x, less), x)

    def of_y() -> Any:
        # 0 to a power stays 0, whatever the logarithm of 0 is.
        if isinstance(x, int | float):  # weak, so that float64 keeps its digits
            number = math.nan if x < 0 else math.log(x) if x else 0.0
            return like(grad * out * number, y)
        return like(grad * out * log(where(x == 0, 1, x)), y)

    return of_x, of_y


@primitive(traceable=True, infallible=True, bound=bounds.of_first, memory_bound=True)
def neg(x: Array) -> Array:
    """Return ``-x``."""
    return np.negative(x)


@neg.vjp_reading()
def _(grad: Any, out: Any, x: Any) -> Any:
    return -grad


@primitive(traceable=True, infallible=True, bound=bounds.of_first, memory_bound=True)
def abs(x: Array) -> Array:
    """Return the absolute value."""
    return np.abs(x)


@abs.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any) -> Any:
    return grad * sign(x)


@primitive(traceable=True, infallible=True, no_gradient="piecewise constant")
def sign(x: Array) -> Array:
    """Return the sign: -1, 0 or 1."""
    return np.sign(x)


@primitive(traceable=True, infallible=True, memory_bound=True)
def exp(x: Array) -> Array:
    """Return the exponential."""
    return np.exp(x)


@exp.vjp_reading(results=(0,))
def _(grad: Any, out: Any, x: Any) -> Any:
    return grad * out


@primitive(traceable=True, infallible=True, memory_bound=True)
def log(x: Array) -> Array:
    """Return the natural logarithm."""
    return np.log(x)


@log.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any) -> Any:
    return grad / x


@primitive(traceable=True, infallible=True, memory_bound=True)
def expm1(x: Array) -> Array:
    """Return ``exp(x) - 1``, exact for small ``x``."""
    return np.expm1(x)


@expm1.vjp_reading(results=(0,))
def _(grad: Any, out: Any, x: Any) -> Any:
    return grad * (out + 1.0)


@primitive(traceable=True, infallible=True, memory_bound=True)
def log1p(x: Array) -> Array:
    """Return ``log(1 + x)``, exact for small ``x``."""
    return np.log1p(x)


@log1p.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any) -> Any:
    return grad / (x + 1.0)


@primitive(traceable=True, infallible=True, memory_bound=True)
def sqrt(x: Array) -> Array:
    """Return the square root."""
    return np.sqrt(x)


@sqrt.vjp_reading(results=(0,))
def _(grad: Any, out: Any, x: Any) -> Any:
    return grad * 0.5 / out


@primitive(traceable=True, infallible=True, memory_bound=True)
def reciprocal(x: Array) -> Array:
    """Return ``1 / x``."""
    return np.reciprocal(x)


@reciprocal.vjp_reading(results=(0,))
def _(grad: Any, out: Any, x: Any) -> Any:
    return -grad * out * out


@primitive(traceable=True, infallible=True, no_gradient="piecewise constant")
def floor(x: Array) -> Array:
    """Return the largest integer not above ``x``."""
    return np.floor(x)


@primitive(traceable=True, infallible=True, no_gradient="piecewise constant")
def ceil(x: Array) -> Array:
    """Return the smallest integer not below ``x``."""
    return np.ceil(x)


@primitive(traceable=True, infallible=True, no_gradient="piecewise constant")
def trunc(x: Array) -> Array:
    """Return ``x`` rounded towards zero."""
    return np.trunc(x)


@primitive(traceable=True, infallible=True, no_gradient="piecewise constant")
def round(x: Array) -> Array:
    """Return the nearest integer; halves round to even."""
    return np.rint(x)


@primitive(
    traceable=True, infallible=True, bound=bounds.largest_of_all, memory_bound=True
)
def maximum(x: Array, y: Array) -> Array:
    """Return the larger of two elements; NaN if either is NaN."""
    return np.maximum(*pair(x, y))


@primitive(
    traceable=True, infallible=True, bound=bounds.largest_of_all, memory_bound=True
)
def minimum(x: Array, y: Array) -> Array:
    """Return the smaller of two elements; NaN if either is NaN."""
    return np.minimum(*pair(x, y))


@maximum.vjp
@minimum.vjp
def _(grad: Any, out: Any, x: Any, y: Any) -> Any:
    share = _shares(x, y, out)
    return lambda: like(grad * share, x), lambda: like(grad * (1.0 - share), y)


def _shares(x: Any, y: Any, out: Any) -> Any:
    """Return 1 where ``x`` was selected, 0 where ``y`` was, and 0.5 at ties."""
    first = cast(out == x, dtype=out.dtype)
    second = cast(out == y, dtype=out.dtype)
    return first / (first + second)


# Rational approximations of erf on [0, 1] and of erfc beyond (Cephes, S. L. Moshier):
# relative error below 4e-16 in float64.
_ERF = (
    (9.60497373987051638749, 90.0260197203842689217, 2232.00534594684319226)
    + (7003.32514112805075473, 55592.3013010394962768),
    (1.0, 33.5617141647503099647, 521.357949780152679795, 4594.32382970980127987)
    + (22629.0000613890934246, 49267.3942608635921086),
)
_ERFC = (
    (2.46196981473530512524e-10, 0.564189564831068821977, 7.46321056442269912687)
    + (48.6371970985681366614, 196.520832956077098242, 526.445194995477358631)
    + (934.52852717195760754, 1027.55188689515710272, 557.535335369399327526),
    (1.0, 13.2281951154744992508, 86.7072140885989742329, 354.937778887819891062)
    + (975.708501743205489753, 1823.90916687909736289, 2246.33760818710981792)
    + (1656.66309194161350182, 557.535340817727675546),
)


@primitive(traceable=True, infallible=True, memory_bound=True)
def erf(x: Array) -> Array:
    """Return the error function."""
    work = x.astype(np.float64)
    size = np.minimum(np.abs(work), 6.0)  # erf(6) is 1 in float64
    small = size < 1.0
    near = np.where(small, size, 0.0) ** 2
    inside = size * _horner(near, _ERF[0]) / _horner(near, _ERF[1])
    far = np.where(small, 1.0, size)
    outside = 1.0 - np.exp(-far * far) * _horner(far, _ERFC[0]) / _horner(far, _ERFC[1])
    result = np.copysign(np.where(small, inside, outside), work)
    return np.where(np.isnan(work), work, result).astype(x.dtype)


def _horner(x: Array, coefficients: tuple[float, ...]) -> Array:
    value = coefficients[0]
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


@erf.vjp_reading({0: (0,)})
def _(grad: Any, out: Any, x: Any) -> Any:
    return grad * exp(-x * x) * 1.1283791670955126  # 2 / sqrt(pi)
