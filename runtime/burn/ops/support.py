"""Helpers of kernels and gradient rules."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any, TypeAlias

import numpy as np

from burn import dtypes

#: An array of NumPy or CuPy inside a kernel; a tensor, a parameter, a NumPy array or a
#: Python number to a caller.
Array: TypeAlias = Annotated[Any, "array"]
Axes: TypeAlias = Any  # None, an integer, a tuple of them, or an integer tensor

# A union costs isinstance three times as much as a tuple does.
_NUMBERS = (int, float, complex)


def namespace(array: Array) -> Any:
    """Return the array library of ``array``: numpy or cupy."""
    if isinstance(array, (np.ndarray, np.generic)):  # noqa: UP038
        return np
    import cupy

    return cupy


#: The attribute of arrays that lie on a CUDA device, such as CuPy's.
_ON_DEVICE = "__cuda_array_interface__"


def is_on_device(array: Any) -> bool:
    """Return whether an operand lies on a CUDA device."""
    return hasattr(type(array), _ON_DEVICE)


#: Copies an array to the current device, where copies are kept for later runs.
_UPLOAD: ContextVar[Callable[[Any], Array] | None] = ContextVar("upload", default=None)


@contextmanager
def uploading(upload: Callable[[Any], Array]) -> Iterator[None]:
    """Let :func:`as_array` copy arrays of the host by ``upload`` in this context."""
    token = _UPLOAD.set(upload)
    try:
        yield
    finally:
        _UPLOAD.reset(token)


def as_array(like: Array, x: Array) -> Array:
    """Return ``x`` as an array of the library of ``like``.

    NumPy's arrays are returned unchanged, so that plans can trace calls with them.
    """
    xp, is_host = namespace(like), isinstance(x, np.ndarray)
    if is_host and xp is np:
        return x
    upload = _UPLOAD.get() if is_host else None
    return xp.asarray(x) if upload is None else upload(x)


def in_dtype_of(x: Array, value: Any) -> Array:
    """Return an array, or a Python number as one, in the dtype of ``x``."""
    if isinstance(value, int | float):
        return namespace(x).asarray(value, x.dtype)
    return value.astype(x.dtype, copy=False)


def concatenated(arrays: list[Array], axis: int) -> Array:
    """Return raw arrays joined along an axis; some may be lists of numbers.

    CuPy joins no lists, and copies a list of many addresses to the device, which the
    capture of a CUDA graph forbids.
    """
    like = next(filter(is_on_device, arrays), None)
    if like is None:
        return np.concatenate(arrays, axis=axis)
    arrays = [x if hasattr(x, "dtype") else np.asarray(x) for x in arrays]
    arrays = [as_array(like, x) if isinstance(x, np.ndarray) else x for x in arrays]
    if _UPLOAD.get() is None:
        return np.concatenate(arrays, axis=axis)
    axis, xp = axis % arrays[0].ndim, namespace(like)
    extents = [array.shape[axis] for array in arrays]
    shape = list(arrays[0].shape)
    shape[axis], dtype = sum(extents), xp.result_type(*arrays)
    out, start = xp.empty_like(arrays[0], dtype, shape=shape), 0
    for array, extent in zip(arrays, extents, strict=True):
        out[(slice(None),) * axis + (slice(start, start + extent),)] = array
        start += extent
    return out


def stacked(arrays: list[Array], axis: int) -> Array:
    """Return raw arrays joined along a new axis."""
    return concatenated([np.expand_dims(array, axis) for array in arrays], axis)


#: Matrix products of raw arrays by the name of their library, if not NumPy's.
PRODUCTS: dict[str, Callable[[Array, Array], Array]] = {}


def product(x: Array, y: Array) -> Array:
    """Return ``x @ y`` of raw arrays, by the kernel of their device."""
    return PRODUCTS.get(namespace(x).__name__, np.matmul)(x, y)


def product_into(out: Array, x: Array, y: Array) -> None:
    """Write ``x @ y`` to ``out``."""
    if isinstance(out, np.ndarray):
        np.matmul(x, y, out=out)
    else:
        out[...] = product(x, y)


def projected(x: Array, matrix: np.ndarray[Any, Any], axis: int) -> Array:
    """Return ``matrix`` [rows, columns] applied along an axis of ``x``."""
    weights = as_array(x, matrix.astype(x.dtype, copy=False))
    if namespace(x) is np:
        rows = np.tensordot(x, weights, axes=([axis], [1]))
    else:
        rows = product(np.moveaxis(x, axis, -1), weights.T)
    return np.moveaxis(rows, -1, axis)


def pair(x: Array, y: Array) -> tuple[Array, Array]:
    """Return ``x`` and ``y`` in their common dtype; Python numbers are weak."""
    if type(x) is type(y) is np.ndarray and x.dtype is y.dtype:
        return x, y
    x_weak = isinstance(x, _NUMBERS)
    y_weak = isinstance(y, _NUMBERS)
    if x_weak and y_weak:
        x = np.asarray(x, dtypes.default_dtype(x))
        x_weak = False
    if x_weak:
        y, x = pair(y, x)
        return x, y
    if y_weak:
        dtype = dtypes.promote_scalar(x.dtype, y)
        if dtype != x.dtype:
            x = x.astype(dtype)
        return x, y if dtype == dtypes.string else namespace(x).asarray(y, dtype)
    if x.dtype is not y.dtype and x.dtype != y.dtype:
        if dtypes.string in (x.dtype, y.dtype):
            return x, y  # arrays of symbolic dimensions beside integers
        dtype = dtypes.promote(x.dtype, y.dtype)
        return x.astype(dtype), y.astype(dtype)
    return x, y


def numeric(x: Array, y: Array) -> tuple[Array, Array]:
    """Return :func:`pair`, with bools, which have no arithmetic, as int64."""
    x, y = pair(x, y)
    if x.dtype == dtypes.bool_:
        return x.astype(np.int64), y.astype(np.int64)
    return x, y


def axes_of(axis: Axes, rank: int) -> tuple[int, ...]:
    """Return ``axis`` as a tuple of nonnegative axes, in the same order.

    Raises:
        ValueError: an axis is out of range or repeated.
    """
    if axis is None:
        return tuple(range(rank))
    numbers = integers(axis)
    axes = tuple(a + rank if a < 0 else a for a in numbers)
    if any(not 0 <= a < rank for a in axes) or len(set(axes)) != len(axes):
        raise ValueError(f"expected distinct axes in [{-rank}, {rank}), got {numbers}")
    return axes


def plain_integers(value: Any) -> bool:
    """Return whether ``value`` is a tuple or list of Python integers."""
    if type(value) is not tuple and type(value) is not list:
        return False
    for item in value:  # noqa: SIM110  a generator costs more than the loop
        if type(item) is not int:
            return False
    return True


def integers(value: Any) -> tuple[int, ...]:
    """Return ``value`` (an integer, a sequence or an array of them) as Python integers.

    An array of a device is read on the host.
    """
    if plain_integers(value):
        return tuple(value)
    if type(value) is np.ndarray and value.dtype.kind in "iu":  # without more checks
        return tuple(value.reshape(-1).tolist())
    if isinstance(value, int | np.integer):
        return (int(value),)
    if hasattr(value, "get"):
        value = value.get()
    return tuple(map(int, np.asarray(value).ravel().tolist()))


def plain_number(value: Any) -> Any:
    """Return the element of an array as a Python number; numbers unchanged."""
    return value.item() if hasattr(value, "item") else value


def on_host(values: Any) -> Any:
    """Return a tensor as a host array; other values unchanged."""
    return values.numpy() if hasattr(values, "numpy") else values


def accumulate(x: Array) -> Array:
    """Return ``x`` converted from half types to float32, so that sums are accurate."""
    return x.astype(np.float32) if x.dtype in dtypes.HALVES else x


def contract(*operands: Any, **named: Any) -> Array:
    """Return ``einsum(*operands, **named)``, with 0 for sums over no elements.

    NumPy gives arrays without elements strides of 0, and ``einsum`` multiplies by the
    uninitialized memory at their address, which may be NaN.
    """
    if all(x.size for x in operands if isinstance(x, np.ndarray)):
        return np.einsum(*operands, **named)
    zeros = [_zeros_like(x) if isinstance(x, np.ndarray) else x for x in operands]
    return np.einsum(*zeros, **named)


def _zeros_like(x: Array) -> Array:
    return np.broadcast_to(np.zeros((), x.dtype), x.shape)
