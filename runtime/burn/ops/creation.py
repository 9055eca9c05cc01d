"""Creation of tensors from a shape and a value.

Functions without a tensor argument return host constants, which are copied to a device
when they meet one of its tensors.
"""

import builtins
from typing import Any

import numpy as np

from burn import dtypes
from burn.dtypes import DType
from burn.ops.broadcast import like
from burn.ops.reduction import sum
from burn.ops.support import Array, integers, namespace, plain_number
from burn.primitive import primitive
from burn.tensor import Tensor


@primitive
def full(shape: Any, value: Array, *, dtype: DType | None = None) -> Array:
    """Return a tensor of ``shape`` filled with ``value``, a number or 1-element tensor.

    It is a broadcast view of one element.
    """
    if isinstance(value, bool | int | float | complex):
        value = np.asarray(value, dtypes.default_dtype(value))
    xp = namespace(value)
    one = value.reshape(()).astype(dtype or value.dtype)
    return xp.broadcast_to(one, integers(shape))


@full.vjp
def _(grad: Any, out: Any, shape: Any, value: Any, *, dtype: Any = None) -> Any:
    return None, lambda: like(sum(grad).reshape(value.shape), value)


def zeros(shape: Any, *, dtype: DType = dtypes.float32) -> Tensor:
    """Return zeros of ``shape``."""
    return full(shape, 0, dtype=dtype)


def ones(shape: Any, *, dtype: DType = dtypes.float32) -> Tensor:
    """Return ones of ``shape``."""
    return full(shape, 1, dtype=dtype)


@primitive
def full_like(x: Array, value: Array, *, dtype: DType | None = None) -> Array:
    """Return ``value`` (a number or one-element tensor) in the shape of ``x``.

    The result is on the device of ``x``, and has its dtype by default.
    """
    if not isinstance(value, bool | int | float | complex):
        value = value.reshape(())
    return namespace(x).full(x.shape, value, dtype or x.dtype)


@full_like.vjp
def _(grad: Any, out: Any, x: Any, value: Any, *, dtype: Any = None) -> Any:
    return None, lambda: like(sum(grad).reshape(value.shape), value)


def zeros_like(x: Any, *, dtype: DType | None = None) -> Tensor:
    """Return zeros in the shape of ``x``, by default with its dtype."""
    return full_like(x, 0, dtype=dtype)


def ones_like(x: Any, *, dtype: DType | None = None) -> Tensor:
    """Return ones in the shape of ``x``, by default with its dtype."""
    return full_like(x, 1, dtype=dtype)


@primitive
def arange(
    start: Array, stop: Array = None, step: Array = 1, *, dtype: DType | None = None
) -> Array:
    """Return numbers from ``start`` (0 if only one is passed) to below ``stop``.

    The operands are numbers or tensors of one element; the default dtype is their
    common dtype.

    Raises:
        ValueError: ``step`` is 0.
    """
    if stop is None:
        start, stop = 0, start
    operands = (start, stop, step)
    kind = dtype or _common(operands)
    first, last, by = map(plain_number, operands)
    if by == 0:
        raise ValueError("expected a step other than 0")
    count = builtins.max(int(np.ceil((last - first) / by)), 0)
    arrays = [o for o in operands if hasattr(o, "dtype")]
    xp = namespace(arrays[0]) if arrays else np
    wide = np.int64 if dtypes.is_integer(kind) else np.float64
    return (first + xp.arange(count, dtype=wide) * by).astype(kind)


@arange.vjp
def _(
    grad: Any, out: Any, start: Any, stop: Any = None, step: Any = 1, **_: Any
) -> Any:
    def of_step() -> Any:
        index = arange(grad.shape[0], dtype=grad.dtype)
        return like(sum(grad * index).reshape(step.shape), step)

    if stop is None:
        return None  # it only says how many elements there are
    return lambda: like(sum(grad).reshape(start.shape), start), None, of_step


def _common(operands: tuple[Any, ...]) -> DType:
    """Return the common dtype of the operands; Python numbers are weakly typed."""
    strong = [o.dtype for o in operands if hasattr(o, "dtype")]
    weak = [o for o in operands if not hasattr(o, "dtype")]
    kind = strong[0] if strong else dtypes.default_dtype(builtins.sum(weak))
    for other in strong[1:]:
        kind = dtypes.promote(kind, other)
    for number in weak:
        kind = dtypes.promote_scalar(kind, number)
    return kind


@primitive(no_gradient="a constant")
def eye(
    rows: Any, columns: Any = None, k: Any = 0, *, dtype: DType = dtypes.float32
) -> Array:
    """Return a ``[rows, columns]`` matrix with ones on the ``k``-th diagonal."""
    (n,) = integers(rows)
    (m,) = (n,) if columns is None else integers(columns)
    return np.eye(n, m, integers(k)[0], dtype=dtype)


@primitive(host=True, no_gradient="it is made of constants")
def array(values: Any, *, dtype: DType = dtypes.int64) -> Array:
    """Return nested lists of numbers as a host tensor."""
    return np.asarray(values, dtype)
