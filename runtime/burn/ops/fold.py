"""The im2col transform and its adjoint, and max unpooling."""

from math import prod
from typing import Any

from burn.ops.creation import zeros
from burn.ops.padding import pad
from burn.ops.scatter import scatter_elements
from burn.ops.shape import reshape
from burn.ops.support import Array, accumulate, integers, namespace, on_host
from burn.ops.window import Extents, Padding, pads_of, per_axis, windows
from burn.primitive import composite, primitive
from burn.tensor import Tensor


@primitive
def fold(
    x: Array,
    output_size: Any,
    kernel_size: Any,
    *,
    stride: Extents = 1,
    padding: Padding = 0,
    dilation: Extents = 1,
) -> Array:
    """Return the sums [N, C, *output_size] of the columns ``x`` [N, C prod(K), L].

    Column l is window l, in row-major order, of a padded image; overlapping elements
    are added. This is the adjoint of :func:`unfold`.

    Raises:
        ValueError: the number of columns differs from that of windows.
    """
    size, kernel = integers(output_size), integers(kernel_size)
    wins = windows(size, kernel, stride, padding, dilation)
    batch, rows, length = x.shape
    if length != prod(wins.count) or rows % wins.taps:
        raise ValueError(
            f"expected columns of {wins.taps} elements a channel and "
            f"{prod(wins.count)} windows, got {x.shape}"
        )
    columns = x.reshape(batch, rows // wins.taps, wins.taps, *wins.count)
    columns = accumulate(columns)
    covered, inside = wins.uncover(columns[:, :, 0], 2)
    for number, (_, keys) in enumerate(wins.places()):
        covered[(..., *keys)] += columns[:, :, number]
    return inside.astype(x.dtype, copy=False)


@fold.vjp_reading()
def _(
    grad: Any, out: Any, x: Any, output_size: Any, kernel_size: Any, **static: Any
) -> Any:
    return lambda: unfold(grad, kernel_size, **static)


@primitive
def unfold(
    x: Array,
    kernel_size: Any,
    *,
    stride: Extents = 1,
    padding: Padding = 0,
    dilation: Extents = 1,
) -> Array:
    """Return the windows of ``x`` [N, C, *size] as [N, C prod(K), L] (im2col)."""
    kernel = integers(kernel_size)
    wins = windows(x.shape[2:], kernel, stride, padding, dilation)
    covered = wins.cover(x, 2, 0)
    views = [covered[(..., *keys)] for _, keys in wins.places()]
    columns = namespace(x).stack(views, axis=2)
    return columns.reshape(x.shape[0], x.shape[1] * wins.taps, prod(wins.count))


@unfold.vjp_reading()
def _(grad: Any, out: Any, x: Any, kernel_size: Any, **static: Any) -> Any:
    return lambda: fold(grad, x.shape[2:], kernel_size, **static)


@composite
def max_unpool(
    x: Array,
    indices: Array,
    output_size: Any = None,
    *,
    kernel_size: Extents,
    stride: Extents = 1,
    padding: Padding = 0,
) -> Tensor:
    """Return zeros with the elements of ``x`` [N, C, *count] at ``indices``.

    The indices are positions in the flattened operand of the pooling, with batch and
    channels. Its spatial extents are ``(count - 1) * stride - padding +
    kernel_size``; the result has zeros behind, or is cropped, to the extents
    ``output_size`` of all axes if that is given.
    """
    batch, channels, *count = x.shape
    rank = len(count)
    pads = pads_of(padding, rank)
    kernel, step = per_axis(kernel_size, rank), per_axis(stride, rank, "stride")
    shape = [batch, channels] + [
        (n - 1) * s - sum(sides) + k
        for n, s, sides, k in zip(count, step, pads, kernel, strict=True)
    ]
    flat = zeros((prod(shape),), dtype=x.dtype)
    out = scatter_elements(flat, reshape(indices, -1), reshape(x, -1))
    out = reshape(out, tuple(shape))
    if output_size is None:
        return out
    wanted = integers(on_host(output_size))
    behind = [n - m for n, m in zip(wanted, shape, strict=True)]
    return pad(out, [0] * len(shape) + behind)


@primitive
def unfold_axis(x: Array, *, size: int, axis: int = -1, step: int = 1) -> Array:
    """Return all slices of ``size`` elements along ``axis``, on a new last axis.

    Slices start ``step`` elements after each other, as in ``torch.Tensor.unfold``.

    Raises:
        ValueError: the axis has fewer than ``size`` elements.
    """
    last = namespace(x).moveaxis(x, axis, -1)
    if not 0 < size <= last.shape[-1]:
        raise ValueError(
            f"expected 1 to {last.shape[-1]} elements for a slice, got {size}"
        )
    count = (last.shape[-1] - size) // step + 1
    slices = [last[..., i : i + step * count : step] for i in range(size)]
    stacked = namespace(x).stack(slices, axis=-1)
    return namespace(x).moveaxis(stacked, -2, axis % x.ndim)


@unfold_axis.vjp_reading()
def _(grad: Any, out: Any, x: Any, *, axis: int = -1, step: int = 1, size: int) -> Any:
    return lambda: fold_axis(grad, x.shape[axis], axis=axis % x.ndim, step=step)


@primitive
def fold_axis(x: Array, extent: Any, *, axis: int, step: int = 1) -> Array:
    """Return the sums of overlapping slices: the adjoint of :func:`unfold_axis`.

    ``axis`` is the axis of the slices, of ``extent`` elements in the result.
    """
    slices = namespace(x).moveaxis(accumulate(x), axis, -2)
    count, size = slices.shape[-2:]
    shape = (*slices.shape[:-2], int(extent))
    total = namespace(x).zeros(shape, slices.dtype)
    for i in range(size):
        total[..., i : i + step * count : step] += slices[..., i]
    return namespace(x).moveaxis(total, -1, axis).astype(x.dtype, copy=False)


@fold_axis.vjp_reading()
def _(grad: Any, out: Any, x: Any, extent: Any, *, axis: int, step: int = 1) -> Any:
    return lambda: unfold_axis(grad, size=x.shape[-1], axis=axis, step=step)
