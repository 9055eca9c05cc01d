"""Reshapes as views if strides allow it, otherwise as one copy."""

from math import prod
from typing import Any

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.elementwise.elements import dense
from burn.ops.shape import flatten as flatten_op, reshape as reshape_op
from burn.ops.support import Array, integers


def is_view(
    shape: tuple[int, ...], strides: tuple[int, ...], wanted: tuple[int, ...]
) -> bool:
    """Return whether an array can be viewed with the shape ``wanted``."""
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    new = [n for n in wanted if n != 1]
    while old and new:
        size, step = old.pop()
        joined, target = size, new.pop()
        while joined != target:
            if joined > target:
                if not new:
                    return False
                target *= new.pop()
            else:
                if not old or old[-1][1] != step * joined:
                    return False
                joined *= old.pop()[0]
    return not old and not new


@reshape_op.on(Cuda)
def reshape(x: Array, shape: Any, *, keep_zeros: bool = False) -> Array:
    """Compute :func:`burn.ops.reshape`, with a custom copy kernel if needed."""
    if x.size and not x.flags.c_contiguous:
        target = integers(shape)
        if -1 in target and 0 not in target:
            rest = -prod(target)
            target = tuple(x.size // rest if n == -1 else n for n in target)
        if not is_view(x.shape, x.strides, target):
            x = dense(x)
    return reshape_op.kernel(x, shape, keep_zeros=keep_zeros)


@flatten_op.on(Cuda)
def flatten(x: Array, start: int = 0, end: int = -1) -> Array:
    """Compute :func:`burn.ops.flatten`, with a custom copy kernel if needed."""
    first, last = start % max(x.ndim, 1), end % max(x.ndim, 1)
    if x.size and not x.flags.c_contiguous:
        size = prod(x.shape[first : last + 1])
        target = (*x.shape[:first], size, *x.shape[last + 1 :])
        if not is_view(x.shape, x.strides, target):
            x = dense(x)
    return flatten_op.kernel(x, start, end)
