"""Examples of elementwise operators."""

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


def nonzero(draw: Draw, shape: tuple[int, ...], dtype: type = np.float32) -> Array:
    """Numbers of either sign whose magnitude is at least a half (one for integers)."""
    rng = generator(draw)
    sign = rng.choice([-1, 1], shape)
    if np.issubdtype(dtype, np.integer):
        return np.asarray(sign * rng.integers(1, 6, shape)).astype(dtype)
    return np.asarray(sign * rng.uniform(0.5, 2.0, shape)).astype(dtype)


def broadcastable(draw: Draw, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to ``shape``."""
    dropped = draw(st.integers(0, len(shape)))
    return tuple(n if draw(st.booleans()) else 1 for n in shape[dropped:])


@case("Add", "Sub", "Mul", "Div")
def arithmetic(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    if version < 7:
        return _requested_broadcast(draw, shape)
    other = broadcastable(draw, shape)
    if draw(st.booleans()):
        x, y = floats(draw, shape), nonzero(draw, other)
    else:
        x = integers(draw, shape, -20, 20, np.int32)
        y = nonzero(draw, other, np.int32)
    return Example({}, [x, y])


def _requested_broadcast(draw: Draw, shape: tuple[int, ...]) -> Example:
    x = floats(draw, shape)
    if draw(st.booleans()):
        return Example({}, [x, nonzero(draw, shape)])
    start = draw(st.integers(0, len(shape) - 1))
    stop = draw(st.integers(start + 1, len(shape)))
    attrs = {"broadcast": 1, "axis": start}
    return Example(attrs, [x, nonzero(draw, shape[start:stop])], resizable=False)


@case("Exp")
def unary(draw: Draw, version: int) -> Example:
    return Example({}, [floats(draw, extents(draw))])


@case("Mod")
def mod(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    if draw(st.booleans()):
        y = nonzero(draw, broadcastable(draw, shape))
        fmod = draw(st.sampled_from([0, 1])) if version >= 28 else 1
        return Example({"fmod": fmod}, [floats(draw, shape), y], smooth=False)
    x = integers(draw, shape, -20, 20)
    y = nonzero(draw, broadcastable(draw, shape), np.int64)
    return Example({"fmod": draw(st.sampled_from([0, 1]))}, [x, y])
