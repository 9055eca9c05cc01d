"""Padding, tiling, stacking, and reversal."""

import builtins
from typing import Any

import numpy as np

from burn.ops.broadcast import like
from burn.ops.indexing import add_rows, take
from burn.ops.reduction import sum
from burn.ops.shape import reshape
from burn.ops.support import (
    Array,
    Axes,
    as_array,
    axes_of,
    concatenated,
    integers,
    namespace,
    on_host,
)
from burn.primitive import composite, primitive

Pads = list[tuple[int, int]]


@primitive(traceable=True, memory_bound=True)
def pad(
    x: Array, pads: Any, value: Array = 0, axes: Axes = None, *, mode: str = "constant"
) -> Array:
    """Return ``x`` with ``pads`` more elements at its borders; negative ones crop.

    ``pads`` are the counts before each of ``axes`` (all of them without it), then the
    counts after. ``mode`` is ``"constant"`` (``value``), ``"reflect"`` (without the
    border itself), ``"edge"`` or ``"wrap"``. Cropping comes first; of more elements
    than an axis has, the others are cropped of the values at the other border.

    Raises:
        ValueError: an unknown mode, a wrong number of pads, less than nothing left, or
            nothing to repeat.
    """
    widths = _widths(x.ndim, pads, axes)
    if mode == "constant":
        return _framed(x, widths, value)
    x = x[_slices_inside(x.shape, widths)]
    for axis, width in enumerate(widths):
        index = _source(x.shape[axis], width, mode)
        if len(index) != x.shape[axis]:
            x = namespace(x).take(x, as_array(x, index), axis=axis)
    return x


@pad.vjp_reading({0: (1,), 2: (1,)})
def _(
    grad: Any,
    out: Any,
    x: Any,
    pads: Any,
    value: Any = 0,
    axes: Axes = None,
    *,
    mode: str = "constant",
) -> Any:
    def border() -> Any:
        inner = pad_grad(grad, pads, axes, shape=x.shape, mode=mode)
        return like((sum(grad) - sum(inner)).reshape(value.shape), value)

    return (
        lambda: pad_grad(grad, pads, axes, shape=x.shape, mode=mode),
        None,
        border if mode == "constant" else None,
    )


@composite(outputs=1)
def center_crop_pad(x: Array, shape: Any, axes: Axes = None) -> Any:
    """Return ``x`` cropped or zero-padded to ``shape`` along ``axes``, at its center.

    If the difference is odd, one element more is cropped or padded at the end.
    """
    counts = integers(on_host(shape))
    where = axes_of(axes, len(x.shape))
    before, after = [], []
    for axis, count in zip(where, counts, strict=True):
        more = count - x.shape[axis]
        first = more // 2 if more > 0 else -(-more // 2)
        before.append(first)
        after.append(more - first)
    return pad(x, before + after, 0, where)


@primitive(traceable=True)
def pad_grad(
    grad: Array, pads: Any, axes: Axes = None, *, shape: tuple[int, ...], mode: str
) -> Array:
    """Return ``grad`` of a padded array summed into the elements of ``shape``."""
    widths = _widths(len(shape), pads, axes)
    if mode == "constant":
        return _framed(grad, [(-a, -b) for a, b in widths], 0)
    xp = namespace(grad)
    cropped = [part.stop - part.start for part in _slices_inside(shape, widths)]
    for axis, width in enumerate(widths):
        if builtins.max(width) > 0:
            index = _source(cropped[axis], width, mode)
            rows = xp.moveaxis(grad, axis, 0)
            folded = xp.zeros((cropped[axis], *rows.shape[1:]), grad.dtype)
            add_rows(folded, as_array(rows, index), rows)
            grad = xp.moveaxis(folded, 0, axis)
    opposite = [(builtins.max(-a, 0), builtins.max(-b, 0)) for a, b in widths]
    return _framed(grad, opposite, 0)


@pad_grad.vjp
def _(grad: Any, out: Any, x: Any, pads: Any, axes: Axes = None, **options: Any) -> Any:
    return lambda: pad(grad, pads, 0, axes, mode=options["mode"])


def _widths(rank: int, pads: Any, axes: Axes) -> Pads:
    """Return the counts before and after every axis."""
    counts, where = integers(pads), axes_of(axes, rank)
    if len(counts) != 2 * len(where):
        raise ValueError(f"expected {2 * len(where)} pads, got {len(counts)}")
    widths = [(0, 0)] * rank
    for index, axis in enumerate(where):
        widths[axis] = counts[index], counts[index + len(where)]
    return widths


def _slices_inside(shape: tuple[int, ...], widths: Pads) -> tuple[slice, ...]:
    """Return slices of the elements of ``shape`` that negative widths do not crop."""
    parts = []
    for n, (a, b) in zip(shape, widths, strict=True):
        if n + a + b < 0:
            raise ValueError(f"expected {n} elements or fewer to crop, got {(a, b)}")
        start = builtins.min(builtins.max(-a, 0), n)
        parts.append(slice(start, builtins.max(n + builtins.min(b, 0), start)))
    return tuple(parts)


def _framed(x: Array, widths: Pads, value: Array) -> Array:
    """Return ``x`` padded with ``value``; negative widths crop."""
    inner = _slices_inside(x.shape, widths)
    extents = tuple(n + a + b for n, (a, b) in zip(x.shape, widths, strict=True))
    if all(a <= 0 and b <= 0 for a, b in widths):
        return x[inner]
    if hasattr(value, "reshape"):
        value = value.reshape(()).astype(x.dtype)
    out = np.full_like(x, value, shape=extents)
    places = tuple(
        slice(k.start + a, k.stop + a) if k.stop > k.start else slice(0, 0)
        for k, (a, _) in zip(inner, widths, strict=True)
    )
    out[places] = x[inner]
    return out


def _source(extent: int, width: tuple[int, int], mode: str) -> Any:
    """Return the source index of each element of the padded axis."""
    before, after = builtins.max(width[0], 0), builtins.max(width[1], 0)
    index = np.arange(-before, extent + after)
    if mode not in ("reflect", "edge", "wrap"):
        raise ValueError(f"expected constant, reflect, edge or wrap, got {mode!r}")
    if extent == 0 and len(index):
        raise ValueError(f"mode {mode!r} has no element to repeat")
    if mode == "edge":
        return index.clip(0, builtins.max(extent - 1, 0))
    if mode == "wrap":
        return index % builtins.max(extent, 1)
    period = builtins.max(2 * (extent - 1), 1)
    index = index % period
    return np.minimum(index, period - index) if extent > 1 else index


@primitive(traceable=True, memory_bound=True)
def tile(x: Array, repeats: Any) -> Array:
    """Return ``x`` repeated ``repeats[axis]`` times along every axis."""
    return namespace(x).tile(x, integers(repeats))


@tile.vjp_reading({0: (1,)})
def _(grad: Any, out: Any, x: Any, repeats: Any) -> Any:
    counts = integers(repeats)
    rank = builtins.max(len(counts), x.ndim)
    counts = (1,) * (rank - len(counts)) + counts
    extents = (1,) * (rank - x.ndim) + x.shape
    pairs = [n for both in zip(counts, extents, strict=True) for n in both]

    def share() -> Any:
        total = sum(reshape(grad, tuple(pairs)), tuple(range(0, 2 * rank, 2)))
        return reshape(total, x.shape)

    return share


@primitive(traceable=True, removable=True, memory_bound=True)
def stack(xs: list[Array], axis: int = 0) -> Array:
    """Return the arrays, of equal shape, stacked along a new axis."""
    (position,) = axes_of(axis, xs[0].ndim + 1)
    if any(x.shape != xs[0].shape for x in xs):
        raise ValueError(f"expected one shape, got {[x.shape for x in xs]}")
    key = (*(slice(None),) * position, None)
    return concatenated([x[key] for x in xs], position)


@stack.vjp_reading()
def _(grad: Any, out: Any, xs: Any, axis: int = 0) -> Any:
    return lambda: [take(grad, index, axis) for index in range(len(xs))]


@primitive(traceable=True, removable=True, memory_bound=True)
def flip(x: Array, axis: Axes = None) -> Array:
    """Return ``x`` reversed along ``axis``, or along all axes."""
    return np.flip(x, axes_of(axis, x.ndim))


@flip.vjp_reading()
def _(grad: Any, out: Any, x: Any, axis: Axes = None) -> Any:
    return lambda: flip(grad, axis)


@primitive(traceable=True, memory_bound=True)
def roll(x: Array, shifts: Any, axes: Axes) -> Array:
    """Return ``x`` shifted cyclically by ``shifts`` along ``axes``."""
    steps, along = integers(shifts), axes_of(axes, x.ndim)
    if not x.size:
        return np.roll(x, steps, along)
    totals: dict[int, int] = {}
    for step, axis in np.broadcast(steps, along):
        totals[int(axis)] = totals.get(int(axis), 0) + int(step)
    # NumPy's function has a large overhead, and allocates a copy.
    xp = namespace(x)
    pieces: list[tuple[tuple[slice, ...], tuple[slice, ...]]] = [((), ())]
    for axis in range(x.ndim):
        halves = _rolled_halves(x.shape[axis], totals.get(axis, 0))
        pieces = [((*to, a), (*at, b)) for to, at in pieces for a, b in halves]
    if len(pieces) == 2:
        (axis,) = (a for a, step in totals.items() if step % x.shape[a])
        return xp.concatenate([x[at] for _, at in pieces], axis)
    out = xp.empty_like(x)
    for to, at in pieces:
        out[to] = x[at]
    return out


def _rolled_halves(extent: int, step: int) -> list[tuple[slice, slice]]:
    """Return the slices of a result along an axis, and those of ``x`` in them."""
    first = -step % extent
    if not first:
        return [(slice(None), slice(None))]
    rest = extent - first
    return [(slice(rest), slice(first, None)), (slice(rest, None), slice(first))]


@roll.vjp_reading({0: (1,)})
def _(grad: Any, out: Any, x: Any, shifts: Any, axes: Axes) -> Any:
    return lambda: roll(grad, tuple(-s for s in integers(shifts)), axes)


@primitive(traceable=True, memory_bound=True)
def trilu(x: Array, k: Any = 0, *, upper: bool = True) -> Array:
    """Return the last two axes' triangle on and above (or below) diagonal ``k``."""
    xp, (diagonal,) = namespace(x), integers(k)
    row, column = xp.arange(x.shape[-2])[:, None], xp.arange(x.shape[-1])
    mask = column - row >= diagonal if upper else column - row <= diagonal
    return xp.where(mask, x, xp.zeros((), x.dtype))


@trilu.vjp_reading({0: (1,)})
def _(grad: Any, out: Any, x: Any, k: Any = 0, *, upper: bool = True) -> Any:
    return lambda: trilu(grad, k, upper=upper)


@primitive(traceable=True)
def reverse_sequence(
    x: Array, lengths: Array, *, batch_axis: int = 1, time_axis: int = 0
) -> Array:
    """Return ``x`` with the first ``lengths[b]`` time steps of each batch reversed.

    The two axes are the first two of ``x`` in either order; ``lengths`` is ``[batch]``.
    """
    xp = namespace(x)
    time = xp.arange(x.shape[time_axis])
    end = as_array(x, lengths)[:, None]
    source = xp.where(time < end, end - 1 - time, time)
    batch = xp.arange(x.shape[batch_axis])[:, None]
    if batch_axis == 0:
        return x[batch, source]
    return x[source.T, batch.T]


@reverse_sequence.vjp_reading({0: (1,)})
def _(grad: Any, out: Any, x: Any, lengths: Any, **axes: int) -> Any:
    return lambda: reverse_sequence(grad, lengths, **axes)
