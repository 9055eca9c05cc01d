"""Examples of comparisons, connectives and choice."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.elementwise import broadcastable, old, together
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


def bools(draw: Draw, shape: tuple[int, ...]) -> Array:
    """Bools of which half are true."""
    return np.asarray(generator(draw).random(shape) < 0.5)


def connective(name: str, result: Any) -> None:
    """Declare the strategy of an operator on two bools."""

    @case(name)
    def example(draw: Draw, version: int) -> Example:
        x = bools(draw, extents(draw))
        if version < 7:
            return old(draw, x, lambda s: bools(draw, s), result)
        return Example({}, [x, bools(draw, broadcastable(draw, x.shape))])


def comparison(name: str, result: Any) -> None:
    """Declare the strategy of a comparison; equal numbers are likely."""

    @case(name)
    def example(draw: Draw, version: int) -> Example:
        dtype = draw(st.sampled_from(_compared(name, version)))
        x = integers(draw, extents(draw), -2, 2, dtype)
        if version < 7:
            return old(draw, x, lambda s: integers(draw, s, -2, 2, dtype), result)
        other = broadcastable(draw, x.shape)
        return together(x, integers(draw, other, -2, 2, dtype))


def _compared(name: str, version: int) -> tuple[type, ...]:
    """Return the dtypes of Equal before 11, and of Less and Greater before 9."""
    if name == "Equal" and version < 11:
        return (np.int32, np.int64)
    if version < 9:
        return (np.float32,)
    return (np.float32, np.int32, np.int64)


connective("And", np.logical_and)
connective("Or", np.logical_or)
connective("Xor", np.logical_xor)
comparison("Equal", np.equal)
comparison("Less", np.less)
comparison("Greater", np.greater)
comparison("LessOrEqual", np.less_equal)
comparison("GreaterOrEqual", np.greater_equal)


@case("Not")
def negation(draw: Draw, version: int) -> Example:
    return Example({}, [bools(draw, extents(draw))])


@case("Where")
def where(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    condition = bools(draw, broadcastable(draw, shape))
    dtype = draw(st.sampled_from([np.float32, np.float16]))
    y = floats(draw, broadcastable(draw, shape), dtype)
    x = floats(draw, draw(st.sampled_from([shape, ()])), dtype)
    return Example({}, [condition, x, y if x.ndim else np.asarray(-x)])


def _unusual(draw: Draw) -> Array:
    x = floats(draw, extents(draw))
    flat = x.reshape(-1)
    kinds = generator(draw).integers(0, 5, flat.size)
    for kind, value in enumerate((np.nan, np.inf, -np.inf)):
        flat[kinds == kind] = value
    return x


@case("IsNaN")
def is_nan(draw: Draw, version: int) -> Example:
    return Example({}, [_unusual(draw)])


@case("IsInf")
def is_inf(draw: Draw, version: int) -> Example:
    flags = ("detect_negative", "detect_positive")
    return Example({f: draw(st.sampled_from([0, 1])) for f in flags}, [_unusual(draw)])
