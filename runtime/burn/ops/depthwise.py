"""Convolution where every channel has weights of its own: nothing to sum over.

There is no matrix product in it, so the kernels multiply and add. All of them work on
channels-last arrays, as those of :mod:`burn.ops.conv` do.
"""

import numpy as np

from burn.ops.support import Array, namespace
from burn.ops.window import Windows, every_window

# Below so many channels einsum's innermost loop is too short to pay.
FEW = 64


def depthwise(padded: Array, weight: Array, wins: Windows, groups: int) -> Array:
    """The convolution [N, *count, O] of ``padded`` [N, *size, G], weight [O, 1, *K]."""
    taps = _taps(weight, groups)
    if groups < FEW and taps.shape[-1] == wins.stride[-1] == 1:
        out = _lines(padded, taps[..., 0], wins)
    elif groups < FEW:
        shape = (padded.shape[0], *wins.count, *taps.shape[-2:])
        out = namespace(padded).zeros(shape, padded.dtype)
        for tap, keys in wins.places():
            out += padded[(slice(None), *keys)][..., None] * taps[tap]
    else:
        view = every_window(padded, wins, 1, True)[0]
        *outer, channel = range(view.ndim)
        kept, within = outer[: padded.ndim - 1], outer[padded.ndim - 1 :]
        last = [channel, channel + 1]
        out = np.einsum(view, [*outer, channel], taps, within + last, kept + last)
    return out.reshape(padded.shape[0], *wins.count, weight.shape[0])


def _lines(padded: Array, taps: Array, wins: Windows) -> Array:
    """As :func:`depthwise` where windows stand side by side: lines are long rows.

    The last spatial axis and the channels are one axis, along which the taps repeat.
    """
    count, channels = wins.count[-1], padded.shape[-1]
    lines = padded.reshape(*padded.shape[:-2], padded.shape[-2] * channels)
    shape = (padded.shape[0], *wins.count[:-1], count * channels)
    out = namespace(padded).zeros(shape, padded.dtype)
    term = namespace(padded).empty_like(out)
    for index, keys in wins.places():
        start = index[-1] * wins.dilation[-1] * channels
        line = slice(start, start + count * channels)
        tap = np.tile(taps[index], count)
        np.multiply(lines[(slice(None), *keys[:-1], line)], tap, out=term)
        out += term
    return out


def scatter_depthwise(x: Array, weight: Array, wins: Windows, covered: Array) -> None:
    """Add to ``covered`` [N, *size, G] what ``x`` [N, *count, A] contributes to it."""
    groups = covered.shape[-1]
    x = x.reshape(*x.shape[:-1], groups, -1)
    taps = _taps(weight, groups)
    is_single = taps.shape[-1] == 1
    if is_single:
        x, taps = x[..., 0], taps[..., 0]
    # Not a convolution of the padded x, whose zeros make NaN of an infinite weight.
    for tap, keys in wins.places():
        terms = x * taps[tap]
        covered[(slice(None), *keys)] += terms if is_single else np.sum(terms, axis=-1)


def correlate_depthwise(padded: Array, outer: Array, wins: Windows) -> Array:
    """The gradient [O, 1, *K] of the weight, ``outer`` [N, *count, O] the result's."""
    groups = padded.shape[-1]
    outer = outer.reshape(*outer.shape[:-1], groups, -1)
    axes = list(range(outer.ndim - 2))
    shape = (groups, outer.shape[-1], *wins.kernel)
    weight = namespace(padded).empty(shape, padded.dtype)
    channel = len(axes)
    for tap, keys in wins.places():
        weight[(slice(None), slice(None), *tap)] = np.einsum(
            padded[(slice(None), *keys)],
            [*axes, channel],
            outer,
            [*axes, channel, channel + 1],
            [channel, channel + 1],
        )
    return weight.reshape(-1, 1, *wins.kernel)


def _taps(weight: Array, groups: int) -> Array:
    """``weight`` [A, 1, *K] as [*K, groups, A / groups]."""
    taps = weight.reshape(groups, -1, *weight.shape[2:])
    return namespace(taps).ascontiguousarray(np.moveaxis(taps, (0, 1), (-2, -1)))
