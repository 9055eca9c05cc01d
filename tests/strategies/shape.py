"""Examples of operators on shapes."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st

from tests.strategies.registry import (
    Array,
    Draw,
    Example,
    case,
    extents,
    floats,
    integers,
)


def data(
    draw: Draw, shape: Sequence[int], name: str = "", version: int = 1, place: int = 0
) -> Array:
    """An array of ``shape``, of floats, integers or bools that the operator allows."""
    dtypes = [np.float32, np.int64, np.bool_]
    if name:
        allowed = onnx.defs.get_schema(name, version, "").inputs[place].types
        dtypes = [d for d in dtypes if f"tensor({_name(d)})" in allowed]
    dtype = draw(st.sampled_from(dtypes))
    if dtype is np.float32:
        return floats(draw, shape)
    return integers(draw, shape, 0 if dtype is np.bool_ else -9, 1, dtype)


def _name(dtype: type) -> str:
    return "float" if dtype is np.float32 else np.dtype(dtype).name


def vector(numbers: list[int] | tuple[int, ...]) -> Array:
    """An int64 vector."""
    return np.array(numbers, np.int64)


def axis_of(draw: Draw, rank: int, past_end: bool = False) -> int:
    """An axis, negative or not."""
    return int(draw(st.integers(-rank, rank if past_end else rank - 1)))


def some_axes(draw: Draw, rank: int, least: int = 1, most: int = 2) -> list[int]:
    """Distinct axes in any order, negative or not."""
    chosen = draw(st.permutations(range(rank)))[: draw(st.integers(least, most))]
    return [a - rank if draw(st.booleans()) else a for a in chosen]


@case("Reshape")
def reshape(draw: Draw, version: int) -> Example:
    least = draw(st.sampled_from([0, 1, 1]))
    shape = extents(draw, least=least)
    target = list(draw(st.permutations(shape)))
    if draw(st.booleans()):
        cut = draw(st.integers(1, len(target)))
        target = [prod(target[:cut]), *target[cut:]]
    attrs = {}
    if version >= 14 and draw(st.booleans()):
        attrs["allowzero"] = 1
    elif least:
        for axis in range(min(len(target), len(shape))):
            if target[axis] == shape[axis] and draw(st.booleans()):
                target[axis] = 0
    if (least or 0 not in target) and draw(st.booleans()):
        target[draw(st.integers(0, len(target) - 1))] = -1
    if not least and not attrs and 0 in target:
        target = list(shape)  # 0 means the extent there, which is 0
    if version < 5:
        return Example(
            {"shape": tuple(target)},
            [data(draw, shape, "Reshape", version)],
            resizable=False,
        )
    return Example(
        attrs, [data(draw, shape, "Reshape", version), vector(target)], resizable=False
    )


@case("Transpose")
def transpose(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    perm = tuple(draw(st.permutations(range(len(shape)))))
    attrs = {"perm": perm} if draw(st.booleans()) else {}
    return Example(attrs, [data(draw, shape, "Transpose", version)])


@case("Flatten")
def flatten(draw: Draw, version: int) -> Example:
    shape = extents(draw, 1, 4)
    axis = axis_of(draw, len(shape), True)
    if version < 11:
        axis = abs(axis)
    x = data(draw, shape, "Flatten", version)
    return Example({"axis": axis}, [x])


@case("Squeeze")
def squeeze(draw: Draw, version: int) -> Example:
    shape = list(extents(draw, least=2))
    axes = some_axes(draw, len(shape))
    for axis in axes:
        shape[axis] = 1
    x = data(draw, tuple(shape), "Squeeze", version)
    if draw(st.booleans()):
        return Example({}, [x])
    if version < 11:
        axes = [a % len(shape) for a in axes]
    if version < 13:
        return Example({"axes": tuple(axes)}, [x])
    return Example({}, [x, vector(axes)])


@case("Unsqueeze")
def unsqueeze(draw: Draw, version: int) -> Example:
    shape = extents(draw, 2, 3)
    count = draw(st.integers(1, 2))
    axes = some_axes(draw, len(shape) + count, count, count)
    if version < 11:
        axes = [a % (len(shape) + count) for a in axes]
    if version < 13:
        return Example({"axes": tuple(axes)}, [data(draw, shape, "Unsqueeze", version)])
    return Example({}, [data(draw, shape, "Unsqueeze", version), vector(axes)])


@case("Concat")
def concat(draw: Draw, version: int) -> Example:
    shape = list(extents(draw))
    axis = axis_of(draw, len(shape))
    if version < 11:
        axis %= len(shape)
    attrs = {"axis": axis}
    if version < 4 and draw(st.booleans()):
        axis, attrs = 1, {}
    inputs = []
    for _ in range(draw(st.integers(1, 3))):
        shape[axis] = draw(st.integers(0 if version >= 4 else 1, 3))
        inputs.append(floats(draw, shape))
    expected = [np.concatenate(inputs, axis)]
    return Example(attrs, inputs, resizable=False, expected=expected)


@case("Split")
def split(draw: Draw, version: int) -> Example:
    shape = list(extents(draw))
    axis = axis_of(draw, len(shape)) if version >= 11 else len(shape) - 1
    count = draw(st.integers(1, 3))
    attrs: dict[str, Any] = {"axis": axis}
    if draw(st.booleans()):
        sizes = draw(st.lists(st.integers(1, 3), min_size=count, max_size=count))
        shape[axis] = sum(sizes)
        x = floats(draw, shape)
        expected = np.split(x, np.cumsum(sizes)[:-1], axis)
        if version in (2, 11) or (version == 1 and draw(st.booleans())):
            attrs["split"] = tuple(sizes)
            return Example(attrs, [x], count, resizable=False, expected=expected)
        operand = vector(sizes) if version > 1 else np.array(sizes, np.float32)
        inputs = [x, operand]
        return Example(attrs, inputs, count, resizable=False, expected=expected)
    shape[axis] = count * draw(st.integers(1, 3))
    if version >= 18:
        attrs["num_outputs"] = count
        shape[axis] += 1 if shape[axis] > count and count > 1 else 0
    x = floats(draw, shape)
    pieces = np.array_split(x, count, axis) if version < 18 else None
    return Example(attrs, [x], count, resizable=False, expected=pieces)


@case("Expand")
def expand(draw: Draw, version: int) -> Example:
    full = extents(draw)
    shape = tuple(n if draw(st.booleans()) else 1 for n in full)
    target = [
        n if m == 1 or draw(st.booleans()) else 1
        for n, m in zip(full, shape, strict=True)
    ]
    if draw(st.booleans()):
        shape = shape[draw(st.integers(0, 2)) :]
    elif draw(st.booleans()):
        target = target[draw(st.integers(0, 2)) :]
    return Example(
        {}, [data(draw, shape, "Expand", version), vector(target)], resizable=False
    )


@case("Tile")
def tile(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    if version < 6:
        axis = draw(st.integers(0, len(shape) - 1))
        times = draw(st.integers(1, 3))
        x = floats(draw, shape)
        reps = [times if a == axis else 1 for a in range(len(shape))]
        return Example(
            {},
            [x, np.array([times], np.float32), np.array([axis], np.float32)],
            always_stored=frozenset({1, 2}),
            expected=[np.tile(x, reps)],
        )
    repeats = integers(draw, (len(shape),), 0, 3)
    return Example({}, [data(draw, shape, "Tile", version), repeats])


@case("Shape")
def shape(draw: Draw, version: int) -> Example:
    x = data(draw, extents(draw), "Shape", version)
    attrs = {}
    if version >= 15:
        for name in ("start", "end"):
            if draw(st.booleans()):
                attrs[name] = draw(st.integers(-5, 5))
    return Example(attrs, [x])


@case("Size", "Identity")
def plain(draw: Draw, version: int) -> Example:
    return Example({}, [data(draw, extents(draw, 0, 4))])
