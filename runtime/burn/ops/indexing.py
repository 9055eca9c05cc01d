"""Indexing, slicing and gathering."""

import builtins
from typing import Any

import numpy as np

from burn import dtypes
from burn.ops import bounds
from burn.ops.logic import where
from burn.ops.shape import flatten, permute, reshape
from burn.ops.support import (
    Array,
    Axes,
    accumulate,
    as_array,
    axes_of,
    integers,
    namespace,
)
from burn.primitive import composite, primitive

Key = Any  # whatever may stand in x[...]


@primitive(traceable=True, bound=bounds.of_first, autocast="keep", memory_bound=True)
def getitem(x: Array, key: Key) -> Array:
    """Return ``x[key]`` by NumPy's rules.

    ``key`` is an integer, a slice, None, ``...``, an integer or bool tensor, or a tuple
    of these.
    """
    return x[key]


@getitem.vjp
def _(grad: Any, out: Any, x: Any, key: Key) -> Any:
    return lambda: getitem_grad(grad, key, shape=x.shape)


getitem.declare_reads({0: (1,)})


@primitive
def getitem_grad(grad: Array, key: Key, *, shape: tuple[int, ...]) -> Array:
    """Return zeros of ``shape`` with ``grad`` added at ``key``."""
    work = accumulate(grad)
    out = namespace(grad).zeros(shape, work.dtype)
    if _may_repeat(key):
        namespace(grad).add.at(out, key, work)
    else:
        out[key] = work
    return out.astype(grad.dtype, copy=False)


@getitem_grad.vjp
def _(grad: Any, out: Any, x: Any, key: Key, *, shape: tuple[int, ...]) -> Any:
    return lambda: getitem(grad, key)


def _may_repeat(key: Key) -> bool:
    """Return whether ``key`` can select an element twice: only integer arrays can."""
    if isinstance(key, tuple):
        return any(map(_may_repeat, key))
    if isinstance(key, list):
        return True
    return getattr(key, "ndim", 0) > 0 and key.dtype != dtypes.bool_


@primitive(autocast="keep", memory_bound=True)
def slice(
    x: Array, starts: Any, ends: Any, axes: Axes = None, steps: Any = None
) -> Array:
    """Return ``x`` from ``starts`` to ``ends`` (exclusive) by ``steps`` along ``axes``.

    Bounds are Python's: negative ones count from the end, others are clamped (the start
    of a negative step too, to element 0), so the minimum int64 as the end of a negative
    step includes element 0. By default ``axes`` are the first ones and steps 1.
    Operands are read on the host.
    """
    return x[_slices(x.shape, starts, ends, axes, steps)]


@slice.vjp_reading({0: (1, 2, 3, 4)})
def _(grad: Any, out: Any, x: Any, *bounds: Any) -> Any:
    return lambda: slice_grad(grad, *bounds, shape=x.shape)


@primitive
def slice_grad(
    grad: Array,
    starts: Any,
    ends: Any,
    axes: Axes = None,
    steps: Any = None,
    *,
    shape: tuple[int, ...],
) -> Array:
    """Return zeros of ``shape`` with ``grad`` at the elements :func:`slice` reads."""
    out = namespace(grad).zeros(shape, grad.dtype)
    out[_slices(shape, starts, ends, axes, steps)] = grad
    return out


@slice_grad.vjp
def _(grad: Any, out: Any, x: Any, *bounds: Any, shape: tuple[int, ...]) -> Any:
    return lambda: slice(grad, *bounds)


def _slices(
    shape: tuple[int, ...], starts: Any, ends: Any, axes: Axes, steps: Any
) -> tuple[builtins.slice, ...]:
    first, last = integers(starts), integers(ends)
    where = range(len(first)) if axes is None else axes_of(axes, len(shape))
    by = (1,) * len(first) if steps is None else integers(steps)
    key = [builtins.slice(None)] * len(shape)
    for axis, start, end, step in zip(where, first, last, by, strict=True):
        # Clamped, not empty as Python has it: reading backwards starts at element 0.
        beyond = step < 0 and start < -shape[axis]
        key[axis] = builtins.slice(0 if beyond else start, end, step)
    return tuple(key)


@primitive(traceable=True, bound=bounds.of_first, memory_bound=True)
def take(x: Array, indices: Array, axis: int = 0) -> Array:
    """Return the entries ``indices`` of ``x`` along ``axis``, which they replace.

    ``indices`` are integers of any shape; negative ones count from the end.
    """
    if isinstance(indices, int | list | tuple):
        indices = np.asarray(indices)
    if isinstance(indices, np.ndarray):
        indices = as_array(x, indices)
    return namespace(x).take(x, indices, axis=axis)


@take.vjp_reading({0: (1,)})
def _(grad: Any, out: Any, x: Any, indices: Any, axis: int = 0) -> Any:
    return lambda: take_grad(grad, indices, axis, shape=x.shape)


@primitive
def take_grad(
    grad: Array, indices: Array, axis: int = 0, *, shape: tuple[int, ...]
) -> Array:
    """Return zeros of ``shape`` with ``grad`` added where :func:`take` reads."""
    axis = axis % len(shape)
    xp = namespace(grad)
    index = xp.asarray(indices)
    rows = xp.moveaxis(
        grad.reshape(*shape[:axis], index.size, *shape[axis + 1 :]), axis, 0
    )
    work = accumulate(rows)
    out = xp.zeros((shape[axis], *shape[:axis], *shape[axis + 1 :]), work.dtype)
    add_rows(out, index.ravel() % builtins.max(shape[axis], 1), work)
    return xp.moveaxis(out, 0, axis).astype(grad.dtype, copy=False)


@take_grad.vjp
def _(grad: Any, out: Any, x: Any, *where: Any, shape: tuple[int, ...]) -> Any:
    return lambda: take(grad, *where)


#: Longer runs of equal indices are summed before they are added.
_SHORT = 4


def add_rows(out: Array, index: Array, rows: Array) -> None:
    """Add ``rows[i]`` to ``out[index[i]]`` in place; indices may repeat."""
    if namespace(out) is not np or out.ndim == 1 or len(index) < 2:
        namespace(out).add.at(out, index, rows)
        return
    # Sorted by index, equal ones are runs. One reduceat sums long runs, but takes long
    # for each of them; of short ones the first of all are added, then the second.
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    lengths = np.diff(starts, append=len(index))
    for turn in range(min(_SHORT, int(lengths.max()))):
        some = starts[(lengths > turn) & (lengths <= _SHORT)] + turn
        out[ordered[some]] += rows[order[some]]
    if int(lengths.max()) > _SHORT:
        long = np.repeat(lengths > _SHORT, lengths)
        first = lengths[lengths > _SHORT].cumsum() - lengths[lengths > _SHORT]
        sums = np.add.reduceat(rows[order[long]], first, axis=0)
        out[ordered[long][first]] += sums


@primitive(traceable=True, bound=bounds.of_first, memory_bound=True)
def gather_nd(x: Array, indices: Array, batch_dims: int = 0) -> Array:
    """Return the slices of ``x`` at the index tuples in ``indices[..., :]``.

    The first ``batch_dims`` axes of both are batch axes. The result has the shape
    ``indices.shape[:-1] + x.shape[batch_dims + indices.shape[-1]:]``.

    Raises:
        ValueError: the batch axes differ.
        IndexError: an index is out of bounds.
    """
    if x.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise ValueError(
            f"expected {batch_dims} equal extents first, got {list(x.shape)} and "
            f"{list(indices.shape)}"
        )
    return x[nd_key(indices, batch_dims)]


@gather_nd.vjp_reading({0: (1,)})
def _(grad: Any, out: Any, x: Any, indices: Any, batch_dims: int = 0) -> Any:
    return lambda: gather_nd_grad(grad, indices, batch_dims, shape=x.shape)


@primitive
def gather_nd_grad(
    grad: Array, indices: Array, batch_dims: int = 0, *, shape: tuple[int, ...]
) -> Array:
    """Return zeros of ``shape`` with ``grad`` added where :func:`gather_nd` reads."""
    work = accumulate(grad)
    out = namespace(grad).zeros(shape, work.dtype)
    namespace(grad).add.at(out, nd_key(indices, batch_dims), work)
    return out.astype(grad.dtype, copy=False)


@gather_nd_grad.vjp
def _(grad: Any, out: Any, x: Any, *where: Any, shape: tuple[int, ...]) -> Any:
    return lambda: gather_nd(grad, *where)


def nd_key(indices: Array, batch_dims: int) -> tuple[Array, ...]:
    """Return the NumPy key for index tuples, with batch axes first."""
    xp = namespace(indices)
    places = indices.shape[:-1]
    batch = []
    for axis in range(batch_dims):
        shape = [1] * len(places)
        shape[axis] = places[axis]
        batch.append(xp.arange(places[axis]).reshape(shape))
    return (*batch, *(indices[..., i] for i in range(indices.shape[-1])))


@primitive(no_gradient="the results are integers")
def nonzero(x: Array) -> Array:
    """Return the indices of nonzero elements, int64 ``[rank, count]``.

    They are in row-major order; a scalar counts as rank 1.
    """
    xp = namespace(x)
    places = (x if x.ndim else x.reshape(1)).nonzero()
    if xp is np:  # quicker than stack for a few elements
        out = np.empty((len(places), len(places[0])), np.int64)
        for row, indices in zip(out, places, strict=True):
            row[:] = indices
        return out
    return xp.stack(places).astype(np.int64, copy=False)


@composite(outputs=1)
def compress(x: Array, condition: Array, axis: int | None = None) -> Any:
    """Return the entries of ``x`` along ``axis`` where ``condition`` [n] is true.

    Without ``axis``, ``x`` is flattened. ``condition`` may be shorter than the axis.
    """
    chosen = nonzero(condition)[0]
    if axis is None:
        return take(flatten(x), chosen, 0)
    return take(x, chosen, axis)


@primitive(traceable=True, no_gradient="the result is a bool")
def one_hot_mask(indices: Array, depth: Any, *, axis: int = -1) -> Array:
    """Return a bool one-hot encoding of ``indices`` along a new axis of ``depth``.

    Negative indices count from the end; those out of range are False everywhere.
    """
    xp = namespace(indices)
    (extent,) = integers(depth)
    new_axis = axis % (indices.ndim + 1)
    index = xp.expand_dims(indices, new_axis)
    index = xp.where(index < 0, index + extent, index)
    shape = [1] * index.ndim
    shape[new_axis] = extent
    return xp.equal(index, xp.arange(extent).reshape(shape))


@composite(outputs=1)
def one_hot(indices: Array, depth: Any, values: Array = None, *, axis: int = -1) -> Any:
    """Return ``indices`` one-hot on a new axis of ``depth``, by ``values`` (off, on).

    ``values`` default to 0 and 1 in float32; indices out of range select nothing.
    """
    mask = one_hot_mask(indices, depth, axis=axis)
    if values is None:
        return where(mask, 1.0, 0.0)
    return where(mask, getitem(values, 1), getitem(values, 0))


@composite(outputs=1)
def depth_to_space(x: Array, *, blocksize: int, mode: str = "DCR") -> Any:
    """Return channel blocks moved to space: ``[n, cbb, h, w]`` to ``[n, c, hb, wb]``.

    ``mode`` is ``"DCR"`` or ``"CRD"``, the order of depth, column and row in channels.
    """
    n, channels, height, width = x.shape
    b, depth = blocksize, channels // blocksize**2
    if mode == "DCR":
        x = permute(reshape(x, (n, b, b, depth, height, width)), (0, 3, 4, 1, 5, 2))
    else:
        x = permute(reshape(x, (n, depth, b, b, height, width)), (0, 1, 4, 2, 5, 3))
    return reshape(x, (n, depth, height * b, width * b))


@composite(outputs=1)
def space_to_depth(x: Array, *, blocksize: int, mode: str = "DCR") -> Any:
    """Return spatial blocks moved to channels: ``[n, c, h b, w b]`` to ``[n, b b c, h,
    w]``.

    ``mode`` is that of :func:`depth_to_space`, the inverse operation.
    """
    n, channels, height, width = x.shape
    b = blocksize
    x = reshape(x, (n, channels, height // b, b, width // b, b))
    x = permute(x, (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4))
    return reshape(x, (n, b * b * channels, height // b, width // b))
