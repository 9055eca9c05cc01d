"""Examples of comparisons, connectives and choice."""

import numpy as np
from hypothesis import strategies as st

from tests.strategies.elementwise import broadcastable
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


def _pair(draw: Draw, version: int) -> tuple[dict[str, int], tuple[int, ...], Array]:
    """The attributes, the first shape and the second as an array of extents."""
    shape = extents(draw)
    if version >= 7:
        return {}, shape, np.array(broadcastable(draw, shape), np.int64)
    start = draw(st.integers(0, len(shape) - 1))
    stop = draw(st.integers(start + 1, len(shape)))
    attrs = {"broadcast": 1, "axis": start}
    return attrs, shape, np.array(shape[start:stop], np.int64)


@case("And", "Or", "Xor")
def connective(draw: Draw, version: int) -> Example:
    attrs, shape, other = _pair(draw, version)
    operands = [bools(draw, shape), bools(draw, tuple(other.tolist()))]
    return Example(attrs, operands, resizable=version >= 7)


@case("Equal")
def equality(draw: Draw, version: int) -> Example:
    dtypes = (np.int32, np.int64) + ((np.float32,) if version >= 11 else ())
    return _compared(draw, version, dtypes)


@case("Less", "Greater", "LessOrEqual", "GreaterOrEqual")
def order(draw: Draw, version: int) -> Example:
    dtypes = (np.float32,) + ((np.int32, np.int64) if version >= 9 else ())
    return _compared(draw, version, dtypes)


def _compared(draw: Draw, version: int, dtypes: tuple[type, ...]) -> Example:
    attrs, shape, other = _pair(draw, version)
    dtype = draw(st.sampled_from(dtypes))
    x = integers(draw, shape, -2, 2, dtype)
    y = integers(draw, tuple(other.tolist()), -2, 2, dtype)
    return Example(attrs, [x, y], smooth=False, resizable=version >= 7)


@case("Not")
def negation(draw: Draw, version: int) -> Example:
    return Example({}, [bools(draw, extents(draw))])


@case("Where")
def where(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    condition = bools(draw, broadcastable(draw, shape))
    y = floats(draw, broadcastable(draw, shape))
    return Example({}, [condition, floats(draw, shape), y])


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
