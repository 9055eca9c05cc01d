"""Depthwise convolution: each channel has its own weights.

There is no matrix product in it, so the kernels multiply and add. They work on
channels-last arrays, like those of :mod:`burn.ops.conv`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from burn.ops.support import Array, contract, namespace
from burn.ops.window import Windows, every_window

#: Where windows stand side by side, places and channels are one axis of so many
#: elements: einsum's innermost loop is along it, and its result stays in the cache.
ALONG = 1200


def depthwise(padded: Array, weight: Array, wins: Windows, groups: int) -> Array:
    """Return the convolution [N, *count, O] of [N, *size, G], weight [O, 1, *K]."""
    # CuPy's einsum has no ``out``.
    if weight.shape[0] == groups and isinstance(padded, np.ndarray):
        shape = (padded.shape[0], *wins.count, groups)
        single = np.empty(shape, padded.dtype)
        depthwise_into(padded, channel_taps(weight, wins), wins, single, ...)()
        return single
    taps = _taps(weight, groups)
    shape = (padded.shape[0], *wins.count, *taps.shape[-2:])
    out = namespace(padded).zeros(shape, padded.dtype)
    for tap, keys in wins.places():
        out += padded[(slice(None), *keys)][..., None] * taps[tap]
    return out.reshape(padded.shape[0], *wins.count, weight.shape[0])


def channel_taps(weight: Array, wins: Windows) -> Array:
    """Return ``weight`` [C, 1, *K] as [*K, places * C], for :func:`depthwise_into`."""
    taps = _taps(weight, weight.shape[0])[..., 0]
    together = _together(wins, weight.shape[0])
    # ``tile`` takes three times as long.
    repeated = namespace(taps).broadcast_to(
        taps[..., None, :], (*wins.kernel, together, taps.shape[-1])
    )
    return repeated.reshape(*wins.kernel, together * taps.shape[-1])


def depthwise_into(
    padded: Array, taps: Array, wins: Windows, out: Array, key: Any
) -> Callable[[], Any]:
    """Return a call that computes ``out[key]`` [N, *count, C] of [N, *size, C].

    ``key`` selects images and lines, or is ``...``; ``taps`` are :func:`channel_taps`.
    """
    channels, width = padded.shape[-1], taps.shape[-1]
    if width != channels:
        padded = namespace(padded).ascontiguousarray(padded)
    view = every_window(padded, wins, 1, True)[0]
    if width != channels:
        view = _joined(view, padded.ndim - 2, width // channels)
        out = out.reshape(*out.shape[:-2], -1, width)
    view, out = view[key], out[key]
    *outer, channel = range(view.ndim)
    leading, within = outer[: out.ndim - 1], outer[out.ndim - 1 :]
    operands = (view, [*outer, channel], taps, [*within, channel], [*leading, channel])
    return partial(np.einsum, *operands, out=out)


def _together(wins: Windows, channels: int) -> int:
    """Return how many positions along the last axis are merged with the channels.

    Their windows must be adjacent, and the number must divide the windows of a line.
    """
    if wins.stride[-1] != 1 or not wins.count[-1]:
        return 1
    counts = range(1, max(ALONG // max(channels, 1), 1) + 1)
    return max(n for n in counts if wins.count[-1] % n == 0)


def _joined(view: Array, axis: int, together: int) -> Array:
    """Return ``view`` with ``together`` positions of ``axis`` merged into the last."""
    shape, strides = list(view.shape), list(view.strides)
    shape[axis], shape[-1] = shape[axis] // together, shape[-1] * together
    strides[axis] *= together
    return namespace(view).lib.stride_tricks.as_strided(view, shape, strides)


def scatter_depthwise(x: Array, weight: Array, wins: Windows, covered: Array) -> None:
    """Add the contribution of ``x`` [N, *count, A] to ``covered`` [N, *size, G]."""
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
    """Return the gradient [O, 1, *K] of the weight for ``outer`` [N, *count, O]."""
    groups = padded.shape[-1]
    outer = outer.reshape(*outer.shape[:-1], groups, -1)
    axes = list(range(outer.ndim - 2))
    shape = (groups, outer.shape[-1], *wins.kernel)
    weight = namespace(padded).empty(shape, padded.dtype)
    channel = len(axes)
    for tap, keys in wins.places():
        weight[(slice(None), slice(None), *tap)] = contract(
            padded[(slice(None), *keys)],
            [*axes, channel],
            outer,
            [*axes, channel, channel + 1],
            [channel, channel + 1],
        )
    return weight.reshape(-1, 1, *wins.kernel)


def _taps(weight: Array, groups: int) -> Array:
    """Return ``weight`` [A, 1, *K] as [*K, groups, A / groups]."""
    taps = weight.reshape(groups, -1, *weight.shape[2:])
    return namespace(taps).ascontiguousarray(taps.transpose(*range(2, taps.ndim), 0, 1))
