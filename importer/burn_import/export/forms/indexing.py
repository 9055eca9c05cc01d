"""Indexing, gathering and scattering."""

from typing import Any

import numpy as np

from burn import dtypes
from burn_import.export.registry import form
from burn_import.export.writer import GraphWriter, Operand, static_integers
from burn_ir.dim import Poly

_LEAST = -(2**63)
_MOST = 2**63 - 1


@form("slice")
def slice_(
    w: GraphWriter,
    x: Operand,
    starts: Any,
    ends: Any,
    axes: Any = None,
    steps: Any = None,
) -> Operand:
    bounds = [None if v is None else w.integers(v) for v in (starts, ends, axes, steps)]
    return w.node("Slice", x, *bounds)


@form("take")
def take(w: GraphWriter, x: Operand, indices: Any, axis: int = 0) -> Operand:
    (along,) = static_integers(w, axis)
    return w.node("Gather", x, index(w, indices), axis=along)


def index(w: GraphWriter, indices: Any) -> Operand:
    """Return indices as int64."""
    if isinstance(indices, list | tuple):
        return w.constant(np.asarray(indices, np.int64))
    return w.scalar(indices, dtypes.int64)


@form("one_hot_mask")
def one_hot_mask(
    w: GraphWriter, indices: Operand, depth: Any, *, axis: int = -1
) -> Operand:
    values = w.constant(np.asarray([0, 1], np.float32))
    count = w.integers(depth)
    marks = w.node(
        "OneHot", index(w, indices), count, values, dtype=dtypes.float32, axis=axis
    )
    return w.cast(marks, dtypes.bool_)


@form("getitem")
def getitem(w: GraphWriter, x: Operand, key: Any) -> Operand:
    """Write Python indexing: slices first, then indices and masks, then new axes."""
    items = _expand_items(list(key) if isinstance(key, tuple) else [key], x.rank)
    plain = [item for item in items if item is not None]
    x = _slice_axes(w, x, plain)
    advanced = [(axis, item) for axis, item in enumerate(plain) if _is_index(item)]
    masks = [(axis, item) for axis, item in advanced if _is_mask(item)]
    if masks:
        return _select_masked(w, x, items, masks)
    scalars = [a for a, item in advanced if _rank(item) == 0]
    arrays = [(a, item) for a, item in advanced if _rank(item) > 0]
    if scalars and arrays and len(arrays) + len(scalars) > 1:
        raise w.refuse("mixes integers and arrays of indices")
    if len(arrays) > 1:
        if any(item is None for item in items):
            raise w.refuse("mixes new axes and several arrays of indices")
        return _gather(w, x, arrays)
    dropped = [a for a in scalars if isinstance(plain[a], int)]
    for axis in reversed([a for a in scalars if a not in dropped]):
        x = w.node("Gather", x, index(w, plain[axis]), axis=axis)
        dropped = [a - (a > axis) for a in dropped]
    if dropped:
        x = w.node("Squeeze", x, dropped)
    for axis, item in arrays:
        x = w.node("Gather", x, index(w, item), axis=axis)
    return _insert_axes(w, x, items)


def _expand_items(items: list[Any], rank: int) -> list[Any]:
    """Return the items with full slices for omitted axes and the ellipsis."""
    used = sum(
        _rank(item) if _is_mask(item) else 1
        for item in items
        if item is not None and item is not Ellipsis
    )
    for position, item in enumerate(items):
        if item is Ellipsis:
            rest = [slice(None)] * (rank - used)
            return items[:position] + rest + items[position + 1 :]
    return items + [slice(None)] * (rank - used)


def _is_index(item: Any) -> bool:
    return not isinstance(item, slice)


def _is_mask(item: Any) -> bool:
    return isinstance(item, Operand) and item.dtype == dtypes.bool_


def _rank(item: Any) -> int:
    if isinstance(item, Operand):
        return item.rank
    return 1 if isinstance(item, list | tuple) else 0


def _slice_axes(w: GraphWriter, x: Operand, items: list[Any]) -> Operand:
    """Return ``x`` cut along the axes with slices and fixed integers."""
    bounds: list[tuple[Any, Any, int, Any]] = []
    for axis, item in enumerate(items):
        if isinstance(item, int | Poly):
            stop = _MOST if isinstance(item, int) and item == -1 else item + 1
            bounds.append((item, stop, axis, 1))
        elif isinstance(item, slice) and item != slice(None):
            step = 1 if item.step is None else item.step
            backwards = isinstance(step, int) and step < 0
            first = (_MOST if backwards else 0) if item.start is None else item.start
            last = (_LEAST if backwards else _MOST) if item.stop is None else item.stop
            bounds.append((first, last, axis, step))
        if isinstance(item, Poly):
            items[axis] = 0  # one element is left
    if not bounds:
        return x
    starts, ends, axes, steps = (list(column) for column in zip(*bounds, strict=True))
    cut = w.node("Slice", x, starts, ends, axes, steps)
    return Operand(cut.name, x.shape, x.dtype)


def _insert_axes(w: GraphWriter, x: Operand, items: list[Any]) -> Operand:
    """Return ``x`` with an axis of size 1 for each None."""
    axes, position = [], 0
    for item in items:
        if item is None:
            axes.append(position)
        position += 1 if item is None or not _is_index(item) else _rank(item)
    return w.node("Unsqueeze", x, axes) if axes else x


def _gather(w: GraphWriter, x: Operand, arrays: list[tuple[int, Any]]) -> Operand:
    """Return the elements at index arrays for adjacent axes."""
    axes = [axis for axis, _ in arrays]
    first = axes[0]
    if axes != list(range(first, first + len(axes))):
        raise w.refuse("has arrays of indices at axes that are apart")
    values = [index(w, item) for _, item in arrays]
    shape = values[0]
    for other in values[1:]:
        zeros = w.node("Mul", other, w.scalar(0, dtypes.int64))
        shape = w.node("Add", shape, zeros)
    extent = w.node("Shape", shape, dtype=dtypes.int64)
    columns = [
        w.node("Unsqueeze", w.node("Expand", value, extent), [-1]) for value in values
    ]
    points = w.node("Concat", *columns, axis=-1)
    order = [*axes, *(a for a in range(x.rank) if a not in axes)]
    moved = w.node("Transpose", x, perm=order) if first else x
    gathered = w.node("GatherND", moved, points)
    count = len(w.out[0][0]) - (x.rank - len(axes))
    if not first:
        return gathered
    back = [
        *range(count, count + first),
        *range(count),
        *range(count + first, len(w.out[0][0])),
    ]
    return w.node("Transpose", gathered, perm=back)


def _select_masked(
    w: GraphWriter, x: Operand, items: list[Any], masks: list[Any]
) -> Operand:
    """Return the elements where a mask over the leading axes is true."""
    if len(masks) > 1 or masks[0][0] != 0 or any(i is None for i in items):
        raise w.refuse("has a mask that is not the first index, or several")
    if any(_is_index(item) for item in items if item is not masks[0][1]):
        raise w.refuse("mixes a mask and indices")
    positions = w.node("NonZero", masks[0][1], dtype=dtypes.int64)
    return w.node("GatherND", x, w.node("Transpose", positions, perm=[1, 0]))


@form("scatter_nd")
def scatter_nd(
    w: GraphWriter,
    x: Operand,
    indices: Operand,
    updates: Any,
    *,
    reduction: str = "none",
) -> Operand:
    if reduction in ("max", "min"):
        w.require(18, f"ScatterND with reduction {reduction}")
    rest = w.scalar(updates, x.dtype)
    return w.node("ScatterND", x, index(w, indices), rest, reduction=reduction)


@form("scatter_elements")
def scatter_elements(
    w: GraphWriter,
    x: Operand,
    indices: Operand,
    updates: Any,
    *,
    axis: int = 0,
    reduction: str = "none",
) -> Operand:
    if reduction in ("max", "min"):
        w.require(18, f"ScatterElements with reduction {reduction}")
    return w.node(
        *("ScatterElements", x, index(w, indices), w.scalar(updates, x.dtype)),
        axis=axis,
        reduction=reduction,
    )


@form("reverse_sequence")
def reverse_sequence(
    w: GraphWriter, x: Operand, lengths: Any, *, batch_axis: int = 1, time_axis: int = 0
) -> Operand:
    counts = index(w, lengths)
    return w.node(
        "ReverseSequence", x, counts, batch_axis=batch_axis, time_axis=time_axis
    )
