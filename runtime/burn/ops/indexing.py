"""Reading parts of a tensor: Python's indexing, slices, gathers."""

import builtins
from typing import Any

import numpy as np

from burn import dtypes
from burn.ops import bounds
from burn.ops.logic import where
from burn.ops.shape import flatten, permute, reshape
from burn.ops.support import Array, Axes, accumulate, axes_of, integers, namespace
from burn.primitive import composite, primitive

Key = Any  # whatever may stand in x[...]


@primitive(traceable=True, bound=bounds.of_first, autocast="keep", memory_bound=True)
def getitem(x: Array, key: Key) -> Array:
    """``x[key]`` by NumPy's rules: integers, slices, None, ``...``, integer and bool
    tensors, and tuples of them."""
    return x[key]


@getitem.vjp
def _(grad: Any, out: Any, x: Any, key: Key) -> Any:
    return lambda: getitem_grad(grad, key, shape=x.shape)


@primitive
def getitem_grad(grad: Array, key: Key, *, shape: tuple[int, ...]) -> Array:
    """Zeros of ``shape`` to which ``grad`` is added at ``key``."""
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
    """Whether ``key`` can name an element twice: only integer arrays can."""
    if isinstance(key, tuple):
        return any(map(_may_repeat, key))
    if isinstance(key, list):
        return True
    return getattr(key, "ndim", 0) > 0 and key.dtype != dtypes.bool_


@primitive(autocast="keep", memory_bound=True)
def slice(
    x: Array, starts: Any, ends: Any, axes: Axes = None, steps: Any = None
) -> Array:
    """``x`` from ``starts`` to before ``ends`` by ``steps`` along ``axes``.

    Bounds are Python's: negative ones count from the end, those beyond it are clamped
    (the start of a negative step too, to element 0),
    so the least int64 as the end of a negative step includes element 0. ``axes`` are
    the first ones and steps 1 where not given. Operands are read on the host.
    """
    return x[_slices(x.shape, starts, ends, axes, steps)]


@slice.vjp
def _(
    grad: Any,
    out: Any,
    x: Any,
    starts: Any,
    ends: Any,
    axes: Axes = None,
    steps: Any = None,
) -> Any:
    return lambda: slice_grad(grad, starts, ends, axes, steps, shape=x.shape)


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
    """Zeros of ``shape`` with ``grad`` where :func:`slice` would read it."""
    out = namespace(grad).zeros(shape, grad.dtype)
    out[_slices(shape, starts, ends, axes, steps)] = grad
    return out


@slice_grad.vjp
def _(
    grad: Any,
    out: Any,
    x: Any,
    starts: Any,
    ends: Any,
    axes: Axes = None,
    steps: Any = None,
    *,
    shape: tuple[int, ...],
) -> Any:
    return lambda: slice(grad, starts, ends, axes, steps)


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
    """The entries ``indices`` of ``x`` along ``axis``, which they replace.

    ``indices`` are integers of any shape; negative ones count from the end.
    """
    return namespace(x).take(x, indices, axis=axis)


@take.vjp
def _(grad: Any, out: Any, x: Any, indices: Any, axis: int = 0) -> Any:
    return lambda: take_grad(grad, indices, axis, shape=x.shape)


@primitive
def take_grad(
    grad: Array, indices: Array, axis: int = 0, *, shape: tuple[int, ...]
) -> Array:
    """Zeros of ``shape`` to which ``grad`` is added where :func:`take` read it."""
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
def _(
    grad: Any,
    out: Any,
    x: Any,
    indices: Any,
    axis: int = 0,
    *,
    shape: tuple[int, ...],
) -> Any:
    return lambda: take(grad, indices, axis)


#: Runs of equal indices that are longer are summed before they are added.
_SHORT = 4


def add_rows(out: Array, index: Array, rows: Array) -> None:
    """Add ``rows[i]`` to ``out[index[i]]`` in place; an index may come repeatedly."""
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
    """The slices of ``x`` that the last axis of ``indices`` names.

    The first ``batch_dims`` axes of both run together. The result has the shape
    ``indices.shape[:-1] + x.shape[batch_dims + indices.shape[-1]:]``.

    Raises:
        ValueError: the first axes differ.
        IndexError: an index is out of bounds.
    """
    if x.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise ValueError(
            f"expected {batch_dims} equal extents first, got {list(x.shape)} and "
            f"{list(indices.shape)}"
        )
    return x[nd_key(indices, batch_dims)]


@gather_nd.vjp
def _(grad: Any, out: Any, x: Any, indices: Any, batch_dims: int = 0) -> Any:
    return lambda: gather_nd_grad(grad, indices, batch_dims, shape=x.shape)


@primitive
def gather_nd_grad(
    grad: Array, indices: Array, batch_dims: int = 0, *, shape: tuple[int, ...]
) -> Array:
    """Zeros of ``shape`` to which ``grad`` is added where :func:`gather_nd` read it."""
    work = accumulate(grad)
    out = namespace(grad).zeros(shape, work.dtype)
    namespace(grad).add.at(out, nd_key(indices, batch_dims), work)
    return out.astype(grad.dtype, copy=False)


@gather_nd_grad.vjp
def _(
    grad: Any,
    out: Any,
    x: Any,
    indices: Any,
    batch_dims: int = 0,
    *,
    shape: tuple[int, ...],
) -> Any:
    return lambda: gather_nd(grad, indices, batch_dims)


def nd_key(indices: Array, batch_dims: int) -> tuple[Array, ...]:
    """The key that the last axis of ``indices`` spells, the batch axes before it."""
    xp = namespace(indices)
    places = indices.shape[:-1]
    batch = []
    for axis in range(batch_dims):
        shape = [1] * len(places)
        shape[axis] = places[axis]
        batch.append(xp.arange(places[axis]).reshape(shape))
    return (*batch, *(indices[..., i] for i in range(indices.shape[-1])))


@primitive
def nonzero(x: Array) -> Array:
    """The indices of the elements that are not 0, int64 ``[rank, count]``.

    They are in row-major order; a scalar counts as rank 1.
    """
    xp = namespace(x)
    return xp.stack(xp.nonzero(xp.atleast_1d(x))).astype(np.int64, copy=False)


nonzero.no_gradient("the result are integers")


@composite(outputs=1)
def compress(x: Array, condition: Array, axis: int | None = None) -> Any:
    """The entries of ``x`` along ``axis`` where the vector ``condition`` is true.

    Without ``axis``, of ``x`` flattened. ``condition`` may be shorter than the axis.
    """
    chosen = nonzero(condition)[0]
    if axis is None:
        return take(flatten(x), chosen, 0)
    return take(x, chosen, axis)


@primitive
def one_hot_mask(indices: Array, depth: Any, *, axis: int = -1) -> Array:
    """Whether the place along a new axis of ``depth`` is the one ``indices`` name.

    Negative indices count from the end; those out of range are nowhere.
    """
    xp = namespace(indices)
    (extent,) = integers(depth)
    new_axis = axis % (indices.ndim + 1)
    index = xp.expand_dims(indices, new_axis)
    index = xp.where(index < 0, index + extent, index)
    shape = [1] * index.ndim
    shape[new_axis] = extent
    return xp.equal(index, xp.arange(extent).reshape(shape))


one_hot_mask.no_gradient("the result is a bool")


@composite(outputs=1)
def one_hot(indices: Array, depth: Any, values: Array = None, *, axis: int = -1) -> Any:
    """``values[1]`` at ``indices`` along a new axis of ``depth``, ``values[0]`` beside.

    ``values`` are 0 and 1 in float32 where not given; indices out of range are nowhere.
    """
    mask = one_hot_mask(indices, depth, axis=axis)
    if values is None:
        return where(mask, 1.0, 0.0)
    return where(mask, getitem(values, 1), getitem(values, 0))


@composite(outputs=1)
def depth_to_space(x: Array, *, blocksize: int, mode: str = "DCR") -> Any:
    """Blocks of channels in space: ``[n, c b b, h, w]`` to ``[n, c, h b, w b]``.

    ``mode`` says whether the channel axis is depth-column-row or column-row-depth.
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
    """Blocks of space in channels: ``[n, c, h b, w b]`` to ``[n, b b c, h, w]``.

    ``mode`` is as in :func:`depth_to_space`, which it undoes.
    """
    n, channels, height, width = x.shape
    b = blocksize
    x = reshape(x, (n, channels, height // b, b, width // b, b))
    x = permute(x, (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4))
    return reshape(x, (n, b * b * channels, height // b, width // b))
