"""Elementwise kernels that preserve the memory order.

CuPy's results are row-major for any operands. If those are dense in another order
(channels-last images), the kernels compute on transposed views.
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.ops import activation, casting, elementwise
from burn.ops.norm import batch_norm as batch_norm_op
from burn.ops.support import Array
from burn.primitive import Primitive

_PRESERVING: tuple[Primitive[..., Any], ...] = (
    *(elementwise.add, elementwise.sub, elementwise.mul, elementwise.div),
    *(elementwise.maximum, elementwise.minimum, activation.clip),
    *(activation.relu, activation.relu_grad, activation.leaky_relu),
    *(activation.tanh, activation.elu, casting.cast),
)


@lru_cache(maxsize=4096)
def memory_order(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[int, ...] | None:
    """Return the axes of a dense array from slowest to fastest, None if it has gaps.

    None as well if the array is row-major.
    """
    axes = sorted(range(len(shape)), key=lambda axis: (-strides[axis], -shape[axis]))
    step = itemsize
    for axis in reversed(axes):
        if shape[axis] != 1 and strides[axis] != step:
            return None
        step *= shape[axis]
    return None if axes == sorted(axes) else tuple(axes)


def preserving(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return an elementwise ``kernel`` whose result keeps the memory order."""

    @wraps(kernel)
    def run(*args: Any, **static: Any) -> Any:
        axes = _order(args)
        if axes is None:
            return kernel(*args, **static)
        rank = len(axes)
        moved = [_transpose(arg, axes) for arg in args]
        out = kernel(*moved, **static)
        return out.transpose(np.argsort(axes).tolist()) if out.ndim == rank else out

    return run


def _order(args: tuple[Any, ...]) -> tuple[int, ...] | None:
    """Return the memory order of the first operand of maximum rank; None: row-major."""
    arrays = [arg for arg in args if hasattr(arg, "data") and hasattr(arg, "ndim")]
    rank = max((array.ndim for array in arrays), default=0)
    if rank < 3:
        return None
    for array in arrays:
        if array.ndim == rank and array.size > 1 and not array.flags.c_contiguous:
            return memory_order(array.shape, array.strides, array.itemsize)
    return None


def _transpose(arg: Any, axes: tuple[int, ...]) -> Any:
    rank = getattr(arg, "ndim", 0)
    if not rank:
        return arg
    if rank < len(axes):
        arg = arg.reshape((1,) * (len(axes) - rank) + arg.shape)
    return arg.transpose(axes)


for _primitive in _PRESERVING:
    _primitive.on(Cuda)(preserving(_primitive.kernel))


@batch_norm_op.on(Cuda)
def batch_norm(
    x: Array,
    mean: Array,
    var: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    epsilon: float = 1e-5,
) -> Array:
    """Compute :func:`burn.ops.batch_norm` in one kernel, in ``x``'s memory order."""
    if x.dtype.kind != "f" or x.ndim < 2:
        return batch_norm_op.kernel(x, mean, var, weight, bias, epsilon=epsilon)
    wide = np.float64 if x.dtype == np.float64 else np.float32
    beside = (-1, *(1 for _ in x.shape[2:]))
    statistics = [
        array.astype(wide, copy=False).reshape(beside)
        for array in (mean, var, weight, bias)
        if array is not None
    ]
    code = _normalizing(weight is not None, bias is not None)
    result: Array = preserving(code)(x, *statistics, wide(epsilon))
    return result


@lru_cache(maxsize=4)
def _normalizing(scaled: bool, shifted: bool) -> Any:
    """Return the kernel for scale and shift by statistics, with optional parameters."""
    import cupy

    operands = ["T x", "A mean", "A var"]
    operands += ["A weight"] * scaled + ["A bias"] * shifted
    scale = "rsqrt(var + epsilon)" + " * weight" * scaled
    shift = " + bias" * shifted
    return cupy.ElementwiseKernel(
        ", ".join([*operands, "A epsilon"]),
        "T y",
        f"y = (T)(((A)x - mean) * ({scale}){shift})",
        "burn_batch_norm",
    )
