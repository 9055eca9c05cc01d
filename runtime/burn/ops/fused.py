"""Primitives that plans put in the place of several others."""

from collections.abc import Callable
from typing import Any

from burn.ops.activation import clip, relu
from burn.ops.conv import conv
from burn.ops.elementwise import add
from burn.ops.support import Array
from burn.primitive import primitive

_KERNELS: dict[str, Callable[..., Array]] = {
    "add": add.kernel,
    "clip": clip.kernel,
    "relu": relu.kernel,
}


@primitive
def conv_then(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    residual: Array | None = None,
    *,
    after: tuple[tuple[Any, ...], ...],
    **static: Any,
) -> Array:
    """:func:`conv`, and what is ``after`` it, in order, in one pass over memory.

    That is ``("relu",)``, ``("clip", low, high)`` or ``("add",)`` of ``residual``,
    which is of the shape of the result. An engine may give a number where NaN is due.
    """
    out = conv.kernel(x, weight, bias, **static)
    for name, *numbers in after:
        out = _KERNELS[name](out, *([residual] if name == "add" else numbers))
    return out


conv_then.no_gradient("plans without gradients alone are made of it")
