"""Examples of elementwise operators."""

from dataclasses import replace
from typing import Any

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


def together(*operands: Array) -> Example:
    """An example without attributes; with an integer vector it is not resizable."""
    fixed = [x.ndim == 1 and np.issubdtype(x.dtype, np.integer) for x in operands]
    return Example({}, operands, resizable=not any(fixed))


def requested(
    draw: Draw, shape: tuple[int, ...]
) -> tuple[dict[str, int], tuple[int, ...], tuple[int, ...]]:
    """Attributes that request broadcasting, the second shape, and that shape aligned.

    Before version 7 an operand was broadcast on request only, from ``axis`` on.
    """
    if draw(st.booleans()):
        return {}, shape, shape
    start = draw(st.integers(0, len(shape) - 1))
    stop = draw(st.integers(start + 1, len(shape)))
    attrs = {"broadcast": 1}
    if stop < len(shape) or draw(st.booleans()):
        attrs["axis"] = start
    return attrs, shape[start:stop], shape[start:stop] + (1,) * (len(shape) - stop)


def old(draw: Draw, x: Array, y: Any, result: Any) -> Example:
    """An example before version 7: ``y(shape)`` makes the second operand."""
    attrs, shape, index = requested(draw, x.shape)
    second = y(shape)
    expected = [np.asarray(result(x, second.reshape(index)))]
    return Example(attrs, [x, second], resizable=False, expected=expected)


def arithmetic(name: str, result: Any) -> None:
    """Declare the strategy of an operator on two numbers."""

    @case(name)
    def example(draw: Draw, version: int) -> Example:
        shape = extents(draw)
        if version < 7:
            x = floats(draw, shape)
            return old(draw, x, lambda s: nonzero(draw, s), result)
        other = broadcastable(draw, shape)
        if draw(st.booleans()):
            return Example({}, [floats(draw, shape), nonzero(draw, other)])
        x = integers(draw, shape, -20, 20, np.int32)
        return together(x, nonzero(draw, other, np.int32))


arithmetic("Add", np.add)
arithmetic("Sub", np.subtract)
arithmetic("Mul", np.multiply)
arithmetic("Div", np.divide)


@case("Mod")
def mod(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    if draw(st.booleans()):
        fmod = 1 if version < 28 else draw(st.sampled_from([0, 1]))
        y = nonzero(draw, broadcastable(draw, shape))
        x = floats(draw, shape)
        turns = x.astype(np.float64) / y
        smooth = bool((np.abs(turns - np.rint(turns)) > 1e-3).all())
        return Example({"fmod": fmod}, [x, y], smooth=smooth)
    x = integers(draw, shape, -20, 20)
    y = nonzero(draw, broadcastable(draw, shape), np.int64)
    attrs = {"fmod": draw(st.sampled_from([0, 1]))}
    return replace(together(x, y), attrs=attrs)


@case("Pow")
def power(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    base = np.abs(nonzero(draw, shape))
    if version < 7:
        return old(draw, base, lambda s: floats(draw, s), np.power)
    other = broadcastable(draw, shape)
    if version < 12 or draw(st.booleans()):
        return Example({}, [base, floats(draw, other)])
    exponent = integers(draw, other, 0, 3, draw(st.sampled_from([np.int32, np.int64])))
    if draw(st.booleans()):
        return together(base, exponent)
    return together(integers(draw, shape, -4, 4, np.int32), exponent)


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
    low = draw(st.sampled_from([None, -0.7, 0.5]))
    high = draw(st.sampled_from([None, 0.6] if version < 12 else [None, 0.6, 0.2]))
    if version < 11:
        attrs = {k: v for k, v in (("min", low), ("max", high)) if v is not None}
        expected = [x if not attrs else np.clip(x, low, high).astype(x.dtype)]
        return Example(attrs, [x], expected=expected)
    if version >= 12 and draw(st.booleans()):
        x = integers(draw, x.shape, -9, 9, draw(st.sampled_from([np.int8, np.int64])))
        low, high = (None if b is None else int(9 * b) for b in (low, high))
    bounds = [None if b is None else np.asarray(b, x.dtype) for b in (low, high)]
    return Example({}, [x, *bounds])
