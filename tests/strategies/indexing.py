"""Examples of operators that read and write at given places."""

from math import prod

import numpy as np
from hypothesis import strategies as st

from tests.strategies.registry import (
    Array,
    Draw,
    Example,
    case,
    extents,
    floats,
    generator,
    integers,
)
from tests.strategies.shape import axis_of, data, some_axes, vector

EDGES = (-(2**63) + 1, -(2**31), 2**31 - 1, 2**63 - 1)


def index(draw: Draw, shape: tuple[int, ...], extent: int, version: int) -> Array:
    """Indices of an axis; negative ones from version 11 on."""
    dtype = draw(st.sampled_from([np.int32, np.int64]))
    return integers(draw, shape, -extent if version >= 11 else 0, extent - 1, dtype)


@case("Gather")
def gather(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    axis = axis_of(draw, len(shape))
    places = extents(draw, 0, 2)
    indices = index(draw, places, shape[axis], version)
    x = data(draw, shape, "Gather", version)
    return Example({"axis": axis}, [x, indices], symbols={1: indices.shape})


@case("GatherElements")
def gather_elements(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    axis = axis_of(draw, len(shape))
    places = list(shape)
    places[axis] = draw(st.integers(1, 5))
    indices = index(draw, tuple(places), shape[axis], version)
    return Example({"axis": axis}, [data(draw, shape), indices], resizable=False)


def nd_index(
    draw: Draw, shape: tuple[int, ...], batch: int = 0, distinct: bool = False
) -> Array:
    """Index vectors into the axes of ``shape`` behind the first ``batch``."""
    depth = draw(st.integers(1, len(shape) - batch))
    inner = shape[batch : batch + depth]
    rng = generator(draw)
    places = (*shape[:batch], *extents(draw, 1, 2, most=3))
    if distinct:
        count = draw(st.integers(1, prod(inner)))
        flat = rng.permutation(prod(inner))[:count]
        return np.stack(np.unravel_index(flat, inner), -1).astype(np.int64)
    columns = [rng.integers(-n, n, places) for n in inner]
    return np.stack(columns, -1).astype(np.int64)


@case("GatherND")
def gather_nd(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    batch = draw(st.integers(0, 2)) if version >= 12 else 0
    indices = nd_index(draw, shape, batch)
    attrs = {"batch_dims": batch} if version >= 12 else {}
    x = data(draw, shape)
    return Example(attrs, [x, indices], resizable=False, symbols={1: indices.shape})


@case("Slice")
def slice_(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    rank = len(shape)
    bound = st.integers(-7, 7) | st.sampled_from(EDGES)
    if draw(st.booleans()):
        axes = list(range(draw(st.integers(1, rank))))
        named = False
    else:
        axes, named = some_axes(draw, rank, 1, rank), True
    if version < 10:
        axes = [a % rank for a in axes]
    starts = [draw(bound) for _ in axes]
    ends = [draw(bound) for _ in axes]
    steps = [draw(st.sampled_from([-3, -2, -1, 1, 2, 3])) for _ in axes]
    stepped = draw(st.booleans())
    if stepped:  # "to the end" is written INT_MIN if the step is negative
        ends = [-abs(e) if s < 0 else e for e, s in zip(ends, steps, strict=True)]
    if version < 10:
        attrs = {"starts": tuple(starts), "ends": tuple(ends)}
        x = data(draw, shape, "Slice", version)
        return Example(attrs | ({"axes": tuple(axes)} if named else {}), [x])
    inputs: list[Array | None]
    inputs = [data(draw, shape), vector(starts), vector(ends)]
    inputs += [vector(axes) if named else None, vector(steps) if stepped else None]
    while inputs[-1] is None:
        inputs.pop()
    return Example({}, inputs)


@case("ScatterElements", "Scatter")
def scatter_elements(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    axis = axis_of(draw, len(shape)) if version >= 11 else 1
    attrs: dict[str, int | str] = {"axis": axis}
    reduction = reduction_of(draw, version)
    if reduction != "none":
        attrs["reduction"] = reduction
    places = [draw(st.integers(1, n)) for n in shape]
    rng = generator(draw)
    # Without a reduction no place may be written twice: the order is not defined.
    rows = np.moveaxis(np.empty(places, np.int64), axis, -1)
    for position in np.ndindex(*rows.shape[:-1]):
        order = rng.permutation(shape[axis])
        rows[position] = order[: rows.shape[-1]] - (shape[axis] if version >= 11 else 0)
    indices = np.ascontiguousarray(np.moveaxis(rows, -1, axis))
    if reduction != "none":
        indices = index(draw, tuple(places), shape[axis], version)
    updates = floats(draw, places)
    return Example(attrs, [floats(draw, shape), indices, updates], resizable=False)


def reduction_of(draw: Draw, version: int) -> str:
    """Return a reduction of updates that the version has."""
    entries = ["none"]
    if version >= 16:
        entries += ["add", "mul"]
    if version >= 18:
        entries += ["max", "min"]
    return str(draw(st.sampled_from(entries)))


@case("ScatterND")
def scatter_nd(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    reduction = reduction_of(draw, version)
    indices = nd_index(draw, shape, distinct=reduction == "none")
    attrs = {} if reduction == "none" else {"reduction": reduction}
    updates = floats(draw, (*indices.shape[:-1], *shape[indices.shape[-1] :]))
    return Example(attrs, [floats(draw, shape), indices, updates], resizable=False)


@case("Compress")
def compress(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    attrs, count = {}, prod(shape)
    if draw(st.booleans()):
        axis = axis_of(draw, len(shape)) if version >= 11 else 1
        attrs, count = {"axis": axis}, shape[axis]
    length = draw(st.integers(1, count))
    condition = integers(draw, (length,), 0, 1, np.bool_)
    x = data(draw, shape)
    return Example(attrs, [x, condition], symbols={1: condition.shape})


@case("NonZero")
def nonzero(draw: Draw, version: int) -> Example:
    return Example({}, [integers(draw, extents(draw), 0, 1, np.float32)])


@case("OneHot")
def one_hot(draw: Draw, version: int) -> Example:
    shape = extents(draw, 2, 3)
    rank = len(shape)
    axis = axis_of(draw, rank + 1)
    depth = draw(st.integers(1, 5))
    low = -depth if version >= 11 else 0
    operand = np.array(depth if draw(st.booleans()) else [depth], np.int64)
    indices = integers(draw, shape, low, depth)
    values = floats(draw, (2,))
    places = np.arange(depth).reshape([-1] + [1] * (rank - axis % (rank + 1)))
    hit = np.expand_dims(indices % depth, axis) == places
    hit &= np.expand_dims(indices != depth, axis)
    inputs = [indices, operand, values]
    expected = [np.where(hit, values[1], values[0])]
    return Example({"axis": axis}, inputs, symbols={2: (2,)}, expected=expected)


@case("DepthToSpace")
def depth_to_space(draw: Draw, version: int) -> Example:
    n, depth, height, width = extents(draw, 4, 4, most=3)
    block = draw(st.integers(1, 3))
    attrs = {"blocksize": block, **mode_of(draw, version >= 11)}
    x = floats(draw, (n, depth * block**2, height, width))
    return Example(attrs, [x], resizable=False)


@case("SpaceToDepth")
def space_to_depth(draw: Draw, version: int) -> Example:
    n, depth, height, width = extents(draw, 4, 4, most=3)
    block = draw(st.integers(1, 3))
    attrs = {"blocksize": block, **mode_of(draw, version >= 28)}
    x = floats(draw, (n, depth, height * block, width * block))
    expected = None
    if attrs.get("mode") == "CRD":
        y = x.reshape(n, depth, height, block, width, block)
        y = y.transpose(0, 1, 3, 5, 2, 4).reshape(n, -1, height, width)
        expected = [np.ascontiguousarray(y)]
    return Example(attrs, [x], resizable=False, expected=expected)


def mode_of(draw: Draw, known: bool) -> dict[str, str]:
    """The order of channels in a block, where the version has a choice."""
    return {"mode": draw(st.sampled_from(["DCR", "CRD"]))} if known else {}
