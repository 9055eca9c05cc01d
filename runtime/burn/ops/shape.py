"""Views and rearrangements without computation."""

import builtins
from itertools import takewhile
from math import prod
from typing import Any

import numpy as np

from burn.facts import Facts
from burn.ops import bounds
from burn.ops.support import Array, Axes, axes_of, concatenated, integers
from burn.primitive import composite, primitive

_VIEW = Facts(
    traceable=True,
    removable=True,
    bound=bounds.of_first,
    autocast="keep",
    memory_bound=True,
)


@primitive(**_VIEW | {"shaped_by": 1})
def reshape(x: Array, shape: Any, *, keep_zeros: bool = False) -> Array:
    """Return the elements of ``x``, row by row, in ``shape``; one extent may be -1.

    With ``keep_zeros`` an extent of 0 is that of ``x`` on the same axis. If ``x`` is
    empty, -1 is the extent of ``x`` on the same axis if ``shape`` keeps the axes before
    it and the number of elements after it, else the quotient of the extents after the
    leading axes that ``shape`` keeps.

    Raises:
        ValueError: the elements do not fit ``shape``, or -1 is ambiguous.
    """
    target = integers(shape)
    if keep_zeros:
        target = tuple(x.shape[i] if n == 0 else n for i, n in enumerate(target))
    if -1 in target and 0 in np.shape(x):
        target = _without_elements(np.shape(x), target)
    return np.reshape(x, target)


def _without_elements(
    extents: tuple[int, ...], target: tuple[int, ...]
) -> tuple[int, ...]:
    """Return ``target`` for an empty tensor, with -1 resolved if possible.

    Raises:
        ValueError: any extent in place of -1 fits.
    """
    axis = target.index(-1)
    is_extent_unchanged = (
        axis < len(extents)
        and extents[:axis] == target[:axis]
        and prod(extents[axis + 1 :]) == prod(target[axis + 1 :])
    )
    if is_extent_unchanged:
        return (*target[:axis], extents[axis], *target[axis + 1 :])
    pairs = takewhile(
        lambda pair: pair[0] == pair[1], zip(extents, target, strict=False)
    )
    kept = builtins.sum(1 for _ in pairs)
    rest, others = prod(extents[kept:]), -prod(target[kept:])
    if others and rest % others == 0:
        return (*target[:axis], rest // others, *target[axis + 1 :])
    if prod(target) == 0:
        raise ValueError(
            f"expected a shape that determines -1, got {list(target)} for a tensor "
            f"without elements, {list(extents)}: is the batch empty?"
        )
    return target


@reshape.vjp
def _(grad: Any, out: Any, x: Any, shape: Any, *, keep_zeros: bool = False) -> Any:
    return reshape(grad, x.shape), None


reshape.declare_reads()


@primitive(**_VIEW)
def permute(x: Array, axes: tuple[int, ...] | None = None) -> Array:
    """Return ``x`` with its axes in the order of ``axes``, or reversed."""
    return np.transpose(x, None if axes is None else axes_of(axes, x.ndim))


@permute.vjp
def _(grad: Any, out: Any, x: Any, axes: tuple[int, ...] | None = None) -> Any:
    if axes is None:
        return permute(grad)
    order = axes_of(axes, x.ndim)
    inverse = tuple(sorted(range(len(order)), key=order.__getitem__))
    return permute(grad, inverse)


permute.declare_reads()


@primitive(**_VIEW)
def transpose(x: Array, first: int, second: int) -> Array:
    """Return ``x`` with two axes swapped."""
    return np.swapaxes(x, first, second)


@transpose.vjp
def _(grad: Any, out: Any, x: Any, first: int, second: int) -> Any:
    return transpose(grad, first, second)


transpose.declare_reads()


@primitive(**_VIEW)
def flatten(x: Array, start: int = 0, end: int = -1) -> Array:
    """Return ``x`` with axes ``start`` to ``end`` (included) merged, at least one."""
    shape = x.shape or (1,)
    first, last = axes_of(start, len(shape))[0], axes_of(end, len(shape))[0]
    size = int(np.prod(shape[first : last + 1], dtype=np.int64))
    return np.reshape(x, (*shape[:first], size, *shape[last + 1 :]))


@flatten.vjp
def _(grad: Any, out: Any, x: Any, start: int = 0, end: int = -1) -> Any:
    return reshape(grad, x.shape)


flatten.declare_reads()


@primitive(**_VIEW | {"shaped_by": 1})
def squeeze(x: Array, axis: Axes = None) -> Array:
    """Return ``x`` without the axes of extent 1 in ``axis`` (all of them if None).

    Raises:
        ValueError: an axis in ``axis`` has another extent.
    """
    if axis is None:
        return np.squeeze(x)
    axes = axes_of(axis, x.ndim)
    for number in axes:
        if x.shape[number] != 1:
            type_name = f"{x.dtype}{list(x.shape)}"
            raise ValueError(f"expected extent 1 on axis {number} of {type_name}")
    return np.squeeze(x, axes)


@squeeze.vjp_reading()
def _(grad: Any, out: Any, x: Any, axis: Axes = None) -> Any:
    return reshape(grad, x.shape), None


@primitive(**_VIEW | {"shaped_by": 1})
def unsqueeze(x: Array, axis: Axes) -> Array:
    """Return ``x`` with axes of extent 1 inserted at the positions ``axis``."""
    return np.expand_dims(x, integers(axis))


@unsqueeze.vjp_reading()
def _(grad: Any, out: Any, x: Any, axis: Axes) -> Any:
    return reshape(grad, x.shape), None


@primitive(**_VIEW)
def concat(xs: list[Array], axis: int = 0) -> Array:
    """Return the arrays concatenated along an existing axis."""
    return concatenated(xs, axis)


@concat.vjp_reading()
def _(grad: Any, out: Any, xs: Any, axis: int = 0) -> Any:
    sizes = [x.shape[axis] for x in xs]
    return lambda: list(split(grad, sizes, axis)), None


@primitive(outputs=0, **_VIEW | {"shaped_by": 1})
def split(x: Array, sizes: Any, axis: int = 0) -> tuple[Array, ...]:
    """Return ``x`` split along ``axis`` into pieces of the given sizes."""
    bounds = np.cumsum(integers(sizes))
    if bounds.size == 0 or bounds[-1] != x.shape[axis]:
        raise ValueError(
            f"expected sizes that sum to {x.shape[axis]}, got {integers(sizes)}"
        )
    return tuple(namespace_split(x, bounds, axis))


def namespace_split(x: Array, bounds: Any, axis: int) -> list[Array]:
    """Return the pieces between ``bounds``, as views."""
    start, pieces = 0, []
    for stop in bounds.tolist():
        key = [slice(None)] * x.ndim
        key[axis] = slice(start, stop)
        pieces.append(x[tuple(key)])
        start = stop
    return pieces


@split.vjp_reading()
def _(grad: Any, out: Any, x: Any, sizes: Any, axis: int = 0) -> Any:
    return concat(list(grad), axis), None


@primitive(outputs=0, **_VIEW | {"shaped_by": 1})
def chunk(x: Array, count: int, axis: int = 0) -> tuple[Array, ...]:
    """Return ``x`` in ``count`` pieces along ``axis``, equal but for the last."""
    extent = x.shape[axis]
    size = -(-extent // count)
    bounds = [builtins.min(size * (i + 1), extent) for i in range(count)]
    return tuple(namespace_split(x, np.asarray(bounds), axis))


@chunk.vjp_reading()
def _(grad: Any, out: Any, x: Any, count: int, axis: int = 0) -> Any:
    return lambda: concat(list(grad), axis)


@primitive(
    host=True, traceable=True, removable=True, no_gradient="the results are integers"
)
def shape(x: Array) -> Array:
    """Return the extents of ``x`` as an int64 tensor, on the host."""
    return np.asarray(x.shape, np.int64)


@primitive(
    host=True, traceable=True, removable=True, no_gradient="the results are integers"
)
def size(x: Array) -> Array:
    """Return the number of elements of ``x`` as an int64 scalar tensor, on the host."""
    return np.asarray(x.size, np.int64)


@composite(outputs=1)
def detach(x: Array) -> Any:
    """Return ``x`` as a constant: no gradient passes through the result."""
    return x.detach()
