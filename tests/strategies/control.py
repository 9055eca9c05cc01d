"""Examples of operators that run their bodies in a loop."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from burn_ir import RawGraph, RawNode, Type
from burn_ir.containers import sequence_of
from tests.strategies.registry import Array, Draw, Example, case, extents, floats
from tests.strategies.sequence import items

Step = tuple[str, Sequence[str], str]


def body(
    inputs: Mapping[str, Type],
    steps: Sequence[Step],
    outputs: Sequence[str],
    constants: Mapping[str, Array] | None = None,
) -> RawGraph:
    """A body of nodes without attributes: (operator, operands, result)."""
    nodes = [RawNode(op, "", {}, tuple(xs), (y,), y) for op, xs, y in steps]
    return RawGraph("body", dict(inputs), tuple(outputs), tuple(nodes), constants or {})


def typed(array: Array) -> Type:
    """The type that a body declares."""
    return Type(array.dtype, array.shape)


def number(value: int, vector: bool) -> Array:
    """An int64 of rank 0, or of shape [1] as old files have it."""
    return np.full((1,) if vector else (), value, np.int64)


@case("Loop")
def loop(draw: Draw, version: int) -> Example:
    """Two values are carried, one is collected, one comes from outside."""
    if version >= 13 and draw(st.booleans()):
        return list_loop(draw)
    shape = extents(draw)
    x, y, outer = floats(draw, shape), floats(draw, shape), floats(draw, shape)
    vector = draw(st.booleans())
    trips = number(draw(st.integers(0, 4)), vector)
    going = np.full(trips.shape, draw(st.sampled_from([True, True, False])))
    steps: list[Step] = [
        ("Mul", ("a", "x4"), "product"),
        ("Sub", ("product", "b"), "a2"),
        ("Tanh", ("a2",), "row"),
    ]
    constants = {}
    if version >= 11 and draw(st.booleans()):
        limit = number(draw(st.integers(0, 3)), vector)
        constants["limit"] = limit
        steps.append(("Less", ("i", "limit"), "more"))
    else:
        steps.append(("Identity", ("c",), "more"))
    given = {"i": typed(trips), "c": typed(going), "a": typed(x), "b": typed(x)}
    result = ("more", "a2", "a", "row")
    forms: list[list[Array | None]] = [[trips, going], [trips, None]]
    if "limit" in constants:
        forms.append([None, going])
    head = draw(st.sampled_from(forms))
    attrs = {"body": body(given, steps, result, constants)}
    return Example(
        attrs,
        [*head, x, y, outer],
        newer=(11, attrs) if version == 1 else None,
        outputs=3,
        captured=frozenset({4}),
        stored=draw(st.sampled_from([frozenset({0, 1}), frozenset({1, 4})])),
        symbols={0: trips.shape, 1: going.shape},
    )


def list_loop(draw: Draw) -> Example:
    """A list grows from round to round, and so does a tensor."""
    xs = items(draw)
    trips = np.array(draw(st.integers(0, 3)), np.int64)
    steps: list[Step] = [
        ("Identity", ("c",), "more"),
        ("SequenceAt", ("list", "zero"), "item"),
        ("Tanh", ("item",), "row"),
        ("SequenceInsert", ("list", "row"), "list2"),
        ("Add", ("total", "row"), "total2"),
    ]
    given = {
        "i": typed(trips),
        "c": Type(np.dtype(np.bool_), ()),
        "list": sequence_of(Type(xs[0].dtype, None)),
        "total": Type(xs[0].dtype, None),
    }
    return Example(
        {
            "body": body(
                given,
                steps,
                ("more", "list2", "total2"),
                {"zero": np.array(0, np.int64)},
            )
        },
        [trips, np.array(True), xs, floats(draw, xs[0].shape)],
        outputs=2,
        stored=frozenset({0, 1}),
        resizable=False,
        symbols={3: xs[0].shape},
    )


@case("Scan")
def scan(draw: Draw, version: int) -> Example:
    """A state, two inputs along different axes, two results along different axes."""
    if version == 8:
        return batch_scan(draw)
    n, m, length = (draw(st.integers(1, 4)) for _ in range(3))
    state, outer = floats(draw, (n, m)), floats(draw, (n, m))
    axes = [draw(st.integers(0, 2)) for _ in range(2)]
    shapes = [[n, m] for _ in axes]
    for shape, axis in zip(shapes, axes, strict=True):
        shape.insert(axis, length)
    xs, ys = (floats(draw, shape) for shape in shapes)
    steps: list[Step] = [
        ("Add", ("h", "x"), "sum"),
        ("Mul", ("sum", "y"), "h2"),
        ("Sub", ("h2", "x3"), "row"),
    ]
    one = Type(state.dtype, (n, m))
    attrs: dict[str, Any] = {
        "body": body({"h": one, "x": one, "y": one}, steps, ("h2", "row", "sum")),
        "num_scan_inputs": 2,
    }
    attrs |= directions(draw, axes)
    sizes = ("rows", "columns")
    symbols: dict[int, tuple[str | int, ...]] = {0: sizes, 3: sizes}
    for index, axis in enumerate(axes, 1):
        symbols[index] = (*sizes[:axis], "length", *sizes[axis:])
    return Example(
        attrs,
        [state, xs, ys, outer],
        outputs=3,
        captured=frozenset({3}),
        stored=draw(st.sampled_from([frozenset({3}), frozenset({0, 2})])),
        symbols=symbols,
    )


def directions(draw: Draw, axes: Sequence[int]) -> dict[str, Any]:
    """Attributes that may be left out where they have their defaults."""
    attrs: dict[str, Any] = {}
    if any(axes) or draw(st.booleans()):
        attrs["scan_input_axes"] = tuple(
            axis - 3 if draw(st.booleans()) else axis for axis in axes
        )
    pairs = st.tuples(st.integers(0, 1), st.integers(0, 1))
    if draw(st.booleans()):
        attrs["scan_input_directions"] = draw(pairs)
    if draw(st.booleans()):
        attrs["scan_output_directions"] = draw(pairs)
    if draw(st.booleans()):
        places = st.integers(-3, 2)
        attrs["scan_output_axes"] = draw(st.tuples(places, places))
    return attrs


def batch_scan(draw: Draw) -> Example:
    """Version 8: every element of a batch, perhaps of its own length."""
    batch, length, n = (draw(st.integers(1, 4)) for _ in range(3))
    lengths = None
    if draw(st.booleans()):
        sizes = [draw(st.integers(1, length)) for _ in range(batch)]
        lengths = np.array(sizes, np.int64)
    steps: list[Step] = [
        ("Add", ("h", "x"), "sum"),
        ("Mul", ("sum", "y"), "h2"),
        ("Tanh", ("h2",), "row"),
    ]
    one = Type(np.dtype(np.float32), (n,))
    attrs: dict[str, Any] = {
        "body": body({"h": one, "x": one, "y": one}, steps, ("h2", "row")),
        "num_scan_inputs": 2,
    }
    if draw(st.booleans()):
        attrs["directions"] = draw(st.tuples(st.integers(0, 1), st.integers(0, 1)))
    xs, ys = (floats(draw, (batch, length, n)) for _ in range(2))
    return Example(attrs, [lengths, floats(draw, (batch, n)), xs, ys], outputs=2)


@case("Scan", domain="burn")
def element_scan(draw: Draw, version: int) -> Example:
    return scan(draw, 11)


@case("FirstRows", domain="burn")
def first_rows(draw: Draw, version: int) -> Example:
    x = floats(draw, extents(draw))
    count = np.array(draw(st.integers(0, len(x))), np.int64)
    return Example({}, [x, count])


@case("FillRows", domain="burn")
def fill_rows(draw: Draw, version: int) -> Example:
    shape = extents(draw)
    rows = floats(draw, (draw(st.integers(0, shape[0])), *shape[1:]))
    whole = floats(draw, (shape[0], *extents(draw, 0, 2)))
    symbols: dict[int, tuple[str | int, ...]] = {
        0: ("made", *rows.shape[1:]),
        1: ("all", *whole.shape[1:]),
    }
    return Example({}, [rows, whole], symbols=symbols)


@case("SequenceMap")
def sequence_map(draw: Draw, version: int) -> Example:
    """Two lists, a tensor for every round, and one from outside."""
    xs = items(draw)
    ys = [floats(draw, x.shape) for x in xs]
    steps: list[Step] = [
        ("Sub", ("x", "y"), "difference"),
        ("Mul", ("difference", "same"), "u"),
        ("Add", ("y", "x3"), "v"),
    ]
    any_rank = Type(xs[0].dtype, None)
    given = {"x": any_rank, "y": any_rank, "same": Type(xs[0].dtype, ())}
    return Example(
        {"body": body(given, steps, ("u", "v"))},
        [xs, ys, floats(draw, ()), floats(draw, (1,))],
        outputs=2,
        captured=frozenset({3}),
    )
