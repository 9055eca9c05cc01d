"""Expanded depthwise convolutions of plans as one call for a generated kernel.

NumPy computes the call until the kernel replaces it, when a plan is first repeated.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from burn.backend.cpu.blas.convolution import KERNELS, conv, conv_then
from burn.backend.cpu.blas.generated_convolution import is_generated
from burn.backend.cpu.blas.piecewise_linear import PiecewiseLinear, activation_of
from burn.backend.cpu.jit.operands import CLIP, SCALED, SILU, Expansion, Layer
from burn.backend.cpu.onednn.binding.capture import compact, do, noting
from burn.ops.fused import After, expanded_depthwise
from burn.ops.support import Array
from burn.ops.window import windows


def generated_expansion(
    x: Array,
    layers: tuple[tuple[Array, Array | None, After], ...],
    stride: Any,
    padding: Any,
) -> Array | None:
    """Return a pointwise and a depthwise convolution, channels-last in memory.

    None if the plan generates no kernel for them: ``layers`` (weight, bias, epilogue)
    are not constant, or an epilogue is no single activation.
    """
    notes: Any = noting()
    if notes is None or not x.size:
        return None
    given = []
    for weight, bias, after in layers:
        kind = _kind(after)
        if kind is None or not is_generated(notes, weight, bias):
            return None
        if weight.dtype != np.float32 or (
            bias is not None and bias.dtype != np.float32
        ):
            return None
        given.append(Layer(weight, bias, *kind))
    if x.dtype != np.float32:
        return None
    first, second = given
    wins = windows(x.shape[2:], second.weight.shape[2:], stride, padding, 1)
    image = compact(x.transpose(0, 2, 3, 1))
    out: Array = notes.empty((len(x), *wins.count, len(second.weight)), x.dtype)
    first = first._replace(weight=first.weight.reshape(len(first.weight), -1))
    second = second._replace(weight=second.weight[:, 0])
    do(partial(expand, Expansion(image, first, second, out, wins)))
    return out.transpose(0, 3, 1, 2)


def expansion_or_layers(
    plain: Callable[..., Array],
    with_epilogue: Callable[..., Array],
    x: Array,
    weight: Array,
    bias: Array | None,
    depth_weight: Array,
    depth_bias: Array | None,
    *,
    after: After,
    depth_after: After,
    stride: Any = 1,
    padding: Any = 0,
) -> Array:
    """Compute :func:`burn.ops.fused.expanded_depthwise` by one call, if supported.

    Otherwise the given kernels compute one convolution each: ``plain`` those without an
    epilogue.
    """
    layers = ((weight, bias, after), (depth_weight, depth_bias, depth_after))
    out = generated_expansion(x, layers, stride, padding)
    if out is not None:
        return out
    options = {"stride": stride, "padding": padding, "groups": len(depth_weight)}
    out = x
    for (matrix, shift, epilogue), static in zip(layers, ({}, options), strict=True):
        if epilogue:
            out = with_epilogue(out, matrix, shift, after=epilogue, **static)
        else:
            out = plain(out, matrix, shift, **static)
    return out


def _kind(after: After) -> tuple[str, Array] | None:
    """Return the kind and the numbers of an epilogue, None for those of no kernel."""
    if not after:
        return CLIP, PiecewiseLinear().numbers()
    if len(after) > 1:
        return None
    if after == (("silu",),):
        return SILU, PiecewiseLinear().numbers()
    function = activation_of(*after[0])
    if function is None:
        return None
    return (CLIP if function.is_clip else SCALED), function.numbers()


def expand(given: Expansion) -> None:
    """Write both convolutions to ``given.out``, by NumPy."""
    image, first, second, out, wins = given
    middle = np.matmul(image, first.weight.T)
    _finish(middle, first)
    covered = wins.cover(middle, 1, 0)
    out[...] = 0
    for tap, keys in wins.places():
        np.add(out, covered[:, *keys] * second.weight[:, *tap], out=out)
    _finish(out, second)


def _finish(out: Array, layer: Layer) -> None:
    """Add a bias and apply an activation, in place."""
    if layer.bias is not None:
        np.add(out, layer.bias, out=out)
    if layer.kind == SILU:
        np.divide(out, 1 + np.exp(-out), out=out)
    else:
        PiecewiseLinear.of(layer.numbers).apply(out)


KERNELS[expanded_depthwise] = partial(expansion_or_layers, conv, conv_then)
