"""Comparisons, logical operations and selection."""

from typing import Any

import numpy as np

from burn.ops import bounds
from burn.ops.broadcast import like
from burn.ops.support import Array, as_array, is_on_device, namespace, pair
from burn.primitive import primitive


@primitive(traceable=True, no_gradient="the result is a bool")
def equal(x: Array, y: Array) -> Array:
    """Return ``x == y``."""
    return np.equal(*pair(x, y))


@primitive(traceable=True, no_gradient="the result is a bool")
def not_equal(x: Array, y: Array) -> Array:
    """Return ``x != y``."""
    return np.not_equal(*pair(x, y))


@primitive(traceable=True, no_gradient="the result is a bool")
def less(x: Array, y: Array) -> Array:
    """Return ``x < y``."""
    return np.less(*pair(x, y))


@primitive(traceable=True, no_gradient="the result is a bool")
def less_equal(x: Array, y: Array) -> Array:
    """Return ``x <= y``."""
    return np.less_equal(*pair(x, y))


@primitive(traceable=True, no_gradient="the result is a bool")
def greater(x: Array, y: Array) -> Array:
    """Return ``x > y``."""
    return np.greater(*pair(x, y))


@primitive(traceable=True, no_gradient="the result is a bool")
def greater_equal(x: Array, y: Array) -> Array:
    """Return ``x >= y``."""
    return np.greater_equal(*pair(x, y))


@primitive(traceable=True, no_gradient="the result is a bool")
def logical_not(x: Array) -> Array:
    """Return the logical negation of each bool."""
    return np.logical_not(x)


@primitive(traceable=True, no_gradient="the result is a bool")
def logical_and(x: Array, y: Array) -> Array:
    """Return whether both operands are true."""
    return np.logical_and(x, y)


@primitive(traceable=True, no_gradient="the result is a bool")
def logical_or(x: Array, y: Array) -> Array:
    """Return whether at least one operand is true."""
    return np.logical_or(x, y)


@primitive(traceable=True, no_gradient="the result is a bool")
def logical_xor(x: Array, y: Array) -> Array:
    """Return whether exactly one operand is true."""
    return np.logical_xor(x, y)


@primitive(traceable=True, no_gradient="the result is a bool")
def isnan(x: Array) -> Array:
    """Return whether an element is NaN."""
    return np.isnan(x)


@primitive(traceable=True, no_gradient="the result is a bool")
def isinf(x: Array) -> Array:
    """Return whether an element is infinite, of either sign."""
    return np.isinf(x)


@primitive(no_gradient="the result is a bool")
def any_nonfinite(arrays: list[Array]) -> Array:
    """Return whether any element of the ``arrays`` is infinite or NaN, a bool []."""
    if not arrays:
        return np.zeros((), np.bool_)
    xp = namespace(arrays[0])
    each = [xp.logical_not(xp.all(xp.isfinite(array))) for array in arrays]
    return xp.any(xp.stack(each))


@primitive(
    traceable=True, removable=True, bound=bounds.largest_of_all, memory_bound=True
)
def where(condition: Array, x: Array, y: Array) -> Array:
    """Return ``x`` where ``condition`` is true, ``y`` elsewhere."""
    chosen, other = pair(x, y)
    if isinstance(condition, np.ndarray | np.generic | bool):
        device = next((x for x in (chosen, other) if is_on_device(x)), None)
        if device is None:
            return np.where(condition, chosen, other)
        condition = as_array(device, np.asarray(condition))
    xp = namespace(condition)
    return xp.where(condition, xp.asarray(chosen), xp.asarray(other))


@where.vjp_reading({1: (0,), 2: (0,)})
def _(grad: Any, out: Any, condition: Any, x: Any, y: Any) -> Any:
    return (
        None,
        lambda: like(where(condition, grad, 0.0), x),
        lambda: like(where(condition, 0.0, grad), y),
    )
