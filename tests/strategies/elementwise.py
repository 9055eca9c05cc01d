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


def _requested_broadcast(
    draw: Draw, shape: tuple[int, ...], base: Array | None = None
) -> Example:
    x = floats(draw, shape) if base is None else base
    if draw(st.booleans()):
        return Example({}, [x, nonzero(draw, shape)])
    start = draw(st.integers(0, len(shape) - 1))
    stop = draw(st.integers(start + 1, len(shape)))
    attrs = {"broadcast": 1, "axis": start}
    return Example(attrs, [x, nonzero(draw, shape[start:stop])], resizable=False)


@case("Mod")
def mod(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    if draw(st.booleans()):
        fmod = 1 if version < 28 else draw(st.sampled_from([0, 1]))
        y = nonzero(draw, broadcastable(draw, shape))
        x = floats(draw, shape)
        return Example({"fmod": fmod}, [x, y], smooth=False)
    x = integers(draw, shape, -20, 20)
    y = nonzero(draw, broadcastable(draw, shape), np.int64)
    return Example({"fmod": draw(st.sampled_from([0, 1]))}, [x, y])


@case("Pow")
def power(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    base = np.abs(nonzero(draw, shape))
    if version < 7:
        return _requested_broadcast(draw, shape, base)
    other = broadcastable(draw, shape)
    if version < 12 or draw(st.booleans()):
        return Example({}, [base, floats(draw, other)])
    exponent = integers(draw, other, 0, 3, draw(st.sampled_from([np.int32, np.int64])))
    if draw(st.booleans()):
        return Example({}, [base, exponent])
    return Example({}, [integers(draw, shape, -4, 4, np.int32), exponent])


@case("Max", "Min", "Sum", "Mean")
def variadic(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    count = draw(st.integers(1, 4))
    shapes = [
        broadcastable(draw, shape) if version >= 8 and i else shape
        for i in range(count)
    ]
    return Example({}, [floats(draw, s) for s in shapes])


@case("Clip")
def clip(draw: Draw, version: int) -> Example:
    x = floats(draw, extents(draw))
    bounds = [
        draw(st.sampled_from([None, low, high]))
        for low, high in ((-0.7, 0.2), (0.5, 0.1))
    ]
    if version < 11:
        named = zip(("min", "max"), bounds, strict=True)
        return Example({k: v for k, v in named if v is not None}, [x])
    if version >= 12 and draw(st.booleans()):
        x = integers(draw, x.shape, -9, 9, draw(st.sampled_from([np.int8, np.int64])))
        bounds = [b if b is None else int(9 * b) for b in bounds]
    return Example(
        {}, [x, *(b if b is None else np.asarray(b, x.dtype) for b in bounds)]
    )
