"""Examples of sequences and optional values."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from burn_ir import Type
from tests.strategies.registry import (
    Array,
    Draw,
    Example,
    Maybe,
    case,
    extents,
    floats,
    integers,
)

#: The version that the newest ones, which only allow more dtypes, compute the same as.
EARLIER: tuple[int, dict[str, Any]] = (18, {})
#: Items of a list have a gradient each; bool and int64 have none.
DTYPES = st.sampled_from([np.float32, np.float32, np.float64, np.int64, np.bool_])


def array(draw: Draw, shape: tuple[int, ...], dtype: Any) -> Array:
    """Random elements of a dtype."""
    if np.dtype(dtype).kind == "f":
        return floats(draw, shape, dtype)
    return integers(draw, shape, 0, 1 if dtype == np.bool_ else 99, dtype)


def items(draw: Draw, dtype: Any = np.float32, least: int = 1) -> list[Array]:
    """Tensors of one rank; their extents may differ in one axis."""
    shape = extents(draw)
    axis = draw(st.integers(0, len(shape) - 1))
    sizes = draw(st.lists(st.integers(1, 4), min_size=least, max_size=4))
    if draw(st.booleans()):
        sizes = [shape[axis]] * len(sizes)
    return [
        array(draw, (*shape[:axis], size, *shape[axis + 1 :]), dtype) for size in sizes
    ]


def position(draw: Draw, low: int, high: int) -> Array:
    """A place in a list, of either integer type."""
    dtype = draw(st.sampled_from([np.int32, np.int64]))
    return np.array(draw(st.integers(low, high)), dtype)


@case("SequenceEmpty")
def empty(draw: Draw, version: int) -> Example:
    return Example(draw(st.sampled_from([{}, {"dtype": 7}, {"dtype": 9}])), [])


@case("SequenceConstruct")
def construct(draw: Draw, version: int) -> Example:
    stored = frozenset({0}) if draw(st.booleans()) else frozenset[int]()
    return Example({}, items(draw, draw(DTYPES)), stored=stored)


@case("SequenceAt")
def at(draw: Draw, version: int) -> Example:
    xs = items(draw, draw(DTYPES))
    return Example({}, [xs, position(draw, -len(xs), len(xs) - 1)])


@case("SequenceInsert")
def insert(draw: Draw, version: int) -> Example:
    xs = items(draw, draw(DTYPES), least=2)
    item = xs.pop()
    places = [position(draw, -len(xs), len(xs))] if draw(st.booleans()) else []
    return Example({}, [xs, item, *places])


@case("SequenceErase")
def erase(draw: Draw, version: int) -> Example:
    xs = items(draw, draw(DTYPES))
    places = [position(draw, -len(xs), len(xs) - 1)] if draw(st.booleans()) else []
    return Example({}, [xs, *places])


@case("SequenceLength")
def length(draw: Draw, version: int) -> Example:
    return Example({}, [items(draw, draw(DTYPES))])


@case("SplitToSequence")
def split(draw: Draw, version: int) -> Example:
    x = array(draw, extents(draw), draw(st.sampled_from([np.float32, np.int64])))
    axis = draw(st.integers(-x.ndim, x.ndim - 1))
    attrs = {"axis": axis} | ({"keepdims": 0} if draw(st.booleans()) else {})
    extent = x.shape[axis]
    form = draw(st.sampled_from(["ones", "equal", "sizes"]))
    if form == "ones":
        return Example(attrs, [x])
    if form == "equal":
        size = draw(st.integers(1, extent + 1))
        expected = np.split(x, range(size, extent, size), axis)
        one = np.array(size, np.int64)
        return Example(attrs, [x, one], expected=[expected], resizable=False)
    cuts = sorted(draw(st.lists(st.integers(0, extent), max_size=3)))
    sizes = np.diff([0, *cuts, extent]).astype(np.int64)
    expected = np.split(x, cuts, axis)
    return Example(attrs, [x, sizes], expected=[expected], resizable=False)


@case("ConcatFromSequence")
def joined(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    new = draw(st.booleans())
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    count = draw(st.integers(1, 4))
    xs = []
    for _ in range(count):
        sizes = list(shape)
        sizes[axis] = shape[axis] if new else draw(st.integers(0, 4))
        xs.append(floats(draw, sizes))
    attrs = {"axis": axis} | ({"new_axis": 1} if new else {})
    return Example(attrs, [xs])


@case("Optional")
def optional(draw: Draw, version: int) -> Example:
    form = draw(st.sampled_from(["tensor", "list", "none"]))
    if form == "none":
        attrs = {"type": Type(np.dtype(np.float32), (2, 3))}
        return Example(attrs, [], newer=(15, attrs))
    value = floats(draw, extents(draw)) if form == "tensor" else items(draw)
    return Example({}, [value], newer=(15, {}))


def maybe(draw: Draw, version: int) -> Maybe | Array | list[Array] | None:
    """An optional operand; since version 18 it may be one that is always there."""
    like = floats(draw, extents(draw)) if draw(st.booleans()) else items(draw)
    plain = version >= 18 and draw(st.booleans())
    return like if plain else Maybe(like, like)


@case("OptionalHasElement")
def has_element(draw: Draw, version: int) -> Example:
    given = maybe(draw, version)
    newer = EARLIER if version > 18 else None
    if isinstance(given, Maybe) and draw(st.booleans()):
        given = Maybe(None, given.like)
    elif version >= 18 and draw(st.booleans()):
        return Example({}, [None] if draw(st.booleans()) else [], newer=newer)
    return Example({}, [given], newer=newer)


@case("OptionalGetElement")
def get_element(draw: Draw, version: int) -> Example:
    newer = EARLIER if version > 18 else None
    return Example({}, [maybe(draw, version)], newer=newer)
