"""N-dimensional convolution, transposed convolution, and their gradients.

The kernels work channels-last: one im2col matrix of all windows, one product with the
weights, and a result that is channels-last in memory behind its channels-first shape,
which the next convolution reads without a copy.
"""

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from burn.ops import bounds, numpy_times
from burn.ops.depthwise import correlate_depthwise, depthwise, scatter_depthwise
from burn.ops.reduction import sum as sum_
from burn.ops.support import Array, accumulate, namespace, pair, product, product_into
from burn.ops.window import (
    Extents,
    Padding,
    Windows,
    every_window,
    per_axis,
    transposed,
    windows,
)
from burn.primitive import composite, primitive

# The maximum size of the im2col matrix, in bytes.
_LIMIT = 256 << 20
# The size of im2col matrices that stay in the cache of a processor, and the number of
# rows for which the product packs its weights.
_CACHED, _ROWS = 512 << 10, 256


@primitive(
    removable=True,
    bound=bounds.layer,
    autocast="lower",
    numpy_time=numpy_times.convolution,
)
def conv(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: Extents = 1,
    padding: Padding = 0,
    dilation: Extents = 1,
    groups: int = 1,
) -> Array:
    """Return the cross-correlation of ``x`` [N, C, *size] and ``weight`` [O, C/G, *K].

    The result is [N, O, *count]. ``padding`` is one integer, one for each spatial axis,
    or a pair (before, after) for each.

    Raises:
        ValueError: the channels do not agree with ``groups``, or a window does not fit.
    """
    _check(x, weight, weight.shape[1] * groups, weight.shape[0], groups)
    dtype, x, weight = _common(x, weight)
    wins = windows(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    kernel = depthwise if weight.shape[1] == 1 and groups > 1 else _grouped
    out = kernel(wins.cover(_channels_last(x), 1, 0, plain=True), weight, wins, groups)
    return _finish(out, bias, dtype)


@conv.vjp
def _(grad: Any, out: Any, x: Any, weight: Any, bias: Any = None, **static: Any) -> Any:
    kernel = weight.shape[2:]
    static = _with_exact_padding(x, kernel, **static)
    return (
        lambda: conv_transpose(grad, weight, **static),
        lambda: conv_weight_grad(x, grad, kernel_size=kernel, **static),
        lambda: _bias_grad(grad),
    )


conv.declare_reads({0: (1,), 1: (0,)})


@primitive(
    removable=True,
    bound=bounds.transposed_layer,
    autocast="lower",
    numpy_time=numpy_times.transposed_convolution,
)
def conv_transpose(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: Extents = 1,
    padding: Padding = 0,
    output_padding: Extents = 0,
    dilation: Extents = 1,
    groups: int = 1,
) -> Array:
    """Return the transpose of :func:`conv`, also called deconvolution.

    ``x`` is [N, C, *count], ``weight`` [C, O/groups, *K] and the result
    [N, O, *size] with
    ``size = (count - 1) * stride + dilation * (K - 1) + 1 - padding + output_padding``.

    Raises:
        ValueError: the channels do not agree, or nothing would be left of an extent.
    """
    _check(x, weight, weight.shape[0], weight.shape[0], groups)
    dtype, x, weight = _common(x, weight)
    wins = transposed(
        x.shape[2:], weight.shape[2:], stride, padding, output_padding, dilation
    )
    channels = weight.shape[1] * groups
    out = namespace(x).empty((x.shape[0], *(1 for _ in wins.size), channels), x.dtype)
    covered, inside = wins.uncover(out, 1)
    if weight.shape[1] == 1 and groups > 1:
        scatter_depthwise(_channels_last(x), weight, wins, covered)
    else:
        _scatter(_channels_last(x), weight, wins, covered, groups)
    return _finish(inside, bias, dtype)


@conv_transpose.vjp_reading({0: (1,), 1: (0,)})
def _(grad: Any, out: Any, x: Any, weight: Any, bias: Any = None, **static: Any) -> Any:
    kernel = weight.shape[2:]
    groups = static.pop("groups", 1)
    pads = transposed(x.shape[2:], kernel, **static).pads
    static.pop("output_padding", None)
    static |= {"padding": pads, "groups": groups}
    return (
        lambda: conv(grad, weight, **static),
        lambda: conv_weight_grad(grad, x, kernel_size=kernel, **static),
        lambda: _bias_grad(grad),
    )


@composite(outputs=1)
def conv_transpose_to(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    size: Extents | None = None,
    upper: bool = False,
    stride: Extents = 1,
    output_padding: Extents = 0,
    dilation: Extents = 1,
    groups: int = 1,
) -> Any:
    """Return :func:`conv_transpose` with the padding that gives a result of ``size``.

    The default ``size`` is that of ``x`` times ``stride``. If the padding is odd, the
    larger half is in front, or behind with ``upper``.
    """
    counts, kernel = x.shape[2:], weight.shape[2:]
    rank = len(counts)
    steps, gaps, more = (per_axis(n, rank) for n in (stride, dilation, output_padding))
    wanted = (
        per_axis(size, rank, "size")
        if size is not None
        else [n * step for n, step in zip(counts, steps, strict=True)]
    )
    pads, extra = [], []
    for axis in range(rank):
        covered = gaps[axis] * (kernel[axis] - 1) + 1
        total = (counts[axis] - 1) * steps[axis] + covered + more[axis] - wanted[axis]
        small = max(total, 0) // 2
        large = max(total, 0) - small
        pads.append((small, large) if upper else (large, small))
        extra.append(more[axis] + max(-total, 0))
    return conv_transpose(
        x,
        weight,
        bias,
        stride=stride,
        padding=tuple(pads),
        output_padding=tuple(extra),
        dilation=dilation,
        groups=groups,
    )


@primitive(removable=True)
def conv_weight_grad(
    x: Array,
    grad: Array,
    *,
    kernel_size: tuple[int, ...],
    stride: Extents = 1,
    padding: Padding = 0,
    dilation: Extents = 1,
    groups: int = 1,
) -> Array:
    """Return the gradient [O, C/groups, *kernel_size] of a convolution's weight.

    ``x`` [N, C, *size] is the input, ``grad`` [N, O, *count] the gradient of the
    result.
    """
    dtype, x, grad = _common(x, grad)
    wins = windows(x.shape[2:], kernel_size, stride, padding, dilation)
    padded = wins.cover(_channels_last(x), 1, 0, plain=True)
    outer = _channels_last(grad)
    if x.shape[1] == groups and groups > 1:
        weight = correlate_depthwise(padded, outer, wins)
    else:
        weight = _correlate(padded, outer, wins, groups)
    return weight.astype(dtype, copy=False)


@conv_weight_grad.vjp
def _(
    grad: Any, out: Any, x: Any, outer: Any, *, kernel_size: Any, **static: Any
) -> Any:
    static = _with_exact_padding(x, kernel_size, **static)
    return (
        lambda: conv_transpose(outer, grad, **static),
        lambda: conv(x, grad, **static),
    )


def _with_exact_padding(
    x: Any, kernel: tuple[int, ...], groups: int = 1, **static: Any
) -> dict[str, Any]:
    """Return the options of a convolution with padding that ends with a window."""
    exact = windows(x.shape[2:], kernel, **static).exact
    return {**static, "padding": exact, "groups": groups}


def _bias_grad(grad: Any) -> Any:
    return sum_(grad, (0, *range(2, grad.ndim)))


def _check(x: Array, weight: Array, channels: int, divided: int, groups: int) -> None:
    if x.ndim != weight.ndim or x.ndim < 3:
        raise ValueError(
            f"expected x and weight of one rank of at least 3, got {x.ndim} and "
            f"{weight.ndim}"
        )
    if x.shape[1] != channels or divided % groups:
        raise ValueError(
            f"expected x of {channels} channels and a weight whose first axis is a "
            f"multiple of {groups} groups, got {x.shape[1]} and {weight.shape}"
        )


def _common(x: Array, y: Array) -> tuple[Any, Array, Array]:
    """Return the result dtype, and both operands in the dtype of the computation."""
    x, y = pair(x, y)
    return x.dtype, accumulate(x), accumulate(y)


def _channels_last(x: Array) -> Array:
    return x.transpose(0, *range(2, x.ndim), 1)  # moveaxis takes three times as long


def _finish(out: Array, bias: Array | None, dtype: Any) -> Array:
    """Return channels-last ``out``, modified in place, plus bias as channels first."""
    if bias is not None:
        out += bias.astype(out.dtype, copy=False)
    return out.transpose(0, out.ndim - 1, *range(1, out.ndim - 1)).astype(
        dtype, copy=False
    )


def _blocks(wins: Windows, batch: int, row_bytes: int, limit: int) -> Iterator[Any]:
    """Yield keys (batch, first spatial axis) of blocks whose windows fit ``limit``.

    Both are in bytes; ``row_bytes`` is the size of one window.
    """
    image = max(row_bytes * prod(wins.count), 1)
    if image <= limit:
        step = max(limit // image, 1)
        for start in range(0, batch, step):
            yield slice(start, min(start + step, batch)), slice(None)
        return
    lines = max(limit * wins.count[0] // image, 1)
    for start in range(batch):
        for line in range(0, wins.count[0], lines):
            yield slice(start, start + 1), slice(line, line + lines)


def _copied_bytes(padded: Array, wins: Windows, row_bytes: int) -> int:
    """Return the maximum size of the windows that are copied for one product."""
    if wins.taps == 1 or not isinstance(padded, np.ndarray):
        return _LIMIT
    return min(max(_CACHED, _ROWS * row_bytes), _LIMIT)


def _matrix(weight: Array, groups: int, taps_first: bool) -> Array:
    """Return ``weight`` [A, B, *K] as [G, A/G, K * B] or, uncopied, [G, A/G, B * K]."""
    if taps_first:
        weight = weight.transpose(0, *range(2, weight.ndim), 1)
    return weight.reshape(groups, weight.shape[0] // groups, prod(weight.shape[1:]))


def _taps_first(wins: Windows, batch: int, channels: int) -> bool:
    """Return whether to reorder the weights, not the windows: the smaller one."""
    return wins.taps == 1 or batch * prod(wins.count) >= channels


def _grouped(padded: Array, weight: Array, wins: Windows, groups: int) -> Array:
    batch, channels = padded.shape[0], weight.shape[0]
    taps_first = _taps_first(wins, batch, channels // groups)
    columns = every_window(padded, wins, groups, taps_first)
    matrix = np.swapaxes(_matrix(weight, groups, taps_first), 1, 2)
    out = namespace(padded).empty((batch, *wins.count, channels), padded.dtype)
    width = matrix.shape[1]
    row_bytes = width * groups * padded.itemsize
    limit = _copied_bytes(padded, wins, row_bytes)
    for part, lines in _blocks(wins, batch, row_bytes, limit):
        block = out[part, lines]
        count = prod(block.shape[:-1])
        rows = columns[:, part, lines].reshape(groups, count, width)
        into = block.reshape(count, groups, channels // groups)
        product_into(into.transpose(1, 0, 2), rows, matrix)
    return out


def _correlate(padded: Array, outer: Array, wins: Windows, groups: int) -> Array:
    batch, channels = padded.shape[0], outer.shape[-1]
    taps_first = _taps_first(wins, batch, channels // groups)
    columns = every_window(padded, wins, groups, taps_first)
    within = padded.shape[-1] // groups
    width = within * wins.taps
    total: Any = 0
    for part, lines in _blocks(wins, batch, width * groups * padded.itemsize, _LIMIT):
        block = outer[part, lines]
        count = prod(block.shape[:-1])
        rows = columns[:, part, lines].reshape(groups, count, width)
        grad = block.reshape(count, groups, channels // groups)
        total = total + product(grad.transpose(1, 2, 0), rows)
    if batch == 0:
        total = namespace(padded).zeros((channels, width), padded.dtype)
    if taps_first and wins.taps > 1:
        total = total.reshape(channels, *wins.kernel, within)
        return namespace(total).ascontiguousarray(np.moveaxis(total, -1, 1))
    return total.reshape(channels, within, *wins.kernel)


def _scatter(
    x: Array, weight: Array, wins: Windows, covered: Array, groups: int
) -> None:
    """Add the contribution of every element of ``x`` to its window in ``covered``."""
    batch, channels = x.shape[0], covered.shape[-1] // groups
    taps_first = _taps_first(wins, batch, x.shape[-1] // groups)
    matrix = _matrix(weight, groups, taps_first)
    row_bytes = matrix.shape[2] * groups * x.itemsize
    for part, lines in _blocks(wins, batch, row_bytes, _LIMIT):
        rows = x[part, lines]
        count = rows.shape[:-1]
        rows = rows.reshape(prod(count), groups, x.shape[-1] // groups)
        rows = rows.transpose(1, 0, 2)
        terms = product(rows, matrix)
        if taps_first:
            terms = terms.reshape(groups, *count, *wins.kernel, channels)
        else:
            terms = terms.reshape(groups, *count, channels, *wins.kernel)
            terms = np.moveaxis(terms, len(count) + 1, -1)
        terms = np.moveaxis(terms, 0, -2)
        first = lines.start or 0
        for tap, keys in wins.places():
            step = wins.stride[0]
            origin = keys[0].start + first * step
            line_key = slice(origin, origin + (count[1] - 1) * step + 1, step)
            into = covered[(part, line_key, *keys[1:])]
            into = into.reshape(*count, groups, channels)
            into += terms[(slice(None),) * len(count) + tap]
