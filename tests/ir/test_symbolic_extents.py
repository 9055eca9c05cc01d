"""Dimensions that operators infer from symbols."""

from typing import Any

import numpy as np
import pytest

from burn import dtypes, ops
from burn_ir import RawGraph, RawModel, RawNode, Type, build
from burn_ir.dim import (
    Poly,
    bind,
    floor_div,
    lower_bound,
    maximum,
    minimum,
    symbol,
    symbols as symbols_of,
)
from burn_ir.errors import InvalidOperand
from burn_ir.ops.quantize import check_pair
from burn_ir.types import broadcast, joint

N = symbol("n")


def inferred(name: str, x: Type, *stored: Any, outputs: int = 1, **attrs: Any) -> str:
    """Return the types of the results as text."""
    constants = {f"c{i}": np.array(c, np.int64) for i, c in enumerate(stored)}
    results = tuple(f"y{i}" for i in range(outputs))
    node = RawNode(name, "", attrs, ("x", *constants), results)
    graph = build(
        RawModel(RawGraph("g", {"x": x}, results, (node,), constants), {"": 25})
    )
    return " ".join(str(graph.types[y].name) for y in graph.outputs)


X = Type(np.dtype("float32"), (N, 6, 8))


@pytest.mark.parametrize(
    ("name", "stored", "attrs", "expected"),
    [
        ("Reshape", [[0, -1]], {}, "float32[n, 48]"),
        ("Reshape", [[-1, 3]], {}, "float32[16 * n, 3]"),
        ("Reshape", [[2, -1]], {}, "float32[2, 24 * n]"),
        ("Slice", [[1], [2**31 - 1], [1]], {}, "float32[n, 5, 8]"),
        ("Slice", [[-1], [-(2**63)], [0], [-1]], {}, "float32[n, 6, 8]"),
        ("Slice", [[2], [2**63 - 1], [0]], {}, "float32[max(n - 2, 0), 6, 8]"),
        ("Tile", [[2, 1, 3]], {}, "float32[2 * n, 6, 24]"),
        ("Expand", [[4, 1, 1, 8]], {}, "float32[4, n, 6, 8]"),
        ("Flatten", [], {"axis": 2}, "float32[6 * n, 8]"),
        ("Pad", [[1, 0, 0, 2, 0, 1]], {}, "float32[n + 3, 6, 9]"),
    ],
)
def test_extents(name: str, stored: Any, attrs: Any, expected: str) -> None:
    assert inferred(name, X, *stored, **attrs) == expected


def test_pieces_of_a_symbolic_extent() -> None:
    shown = inferred("Split", X, outputs=2, axis=0, num_outputs=2)
    assert shown == "float32[(n + 1) // 2, 6, 8] float32[n - (n + 1) // 2, 6, 8]"


def test_shape_arithmetic_is_known() -> None:
    constants = {"i": np.array(0), "c": np.array([48]), "z": np.array([0])}
    nodes = (
        RawNode("Shape", "", {}, ("x",), ("s",)),
        RawNode("Gather", "", {}, ("s", "i"), ("n",)),
        RawNode("Unsqueeze", "", {}, ("n", "z"), ("v",)),
        RawNode("Concat", "", {"axis": 0}, ("v", "c"), ("t",)),
        RawNode("Reshape", "", {}, ("x", "t"), ("y",)),
    )
    graph = build(RawModel(RawGraph("g", {"x": X}, ("y",), nodes, constants), {"": 25}))
    shape = graph.types["y"].shape
    assert shape == (N, 48)
    assert [name for dim in shape for name in symbols_of(dim)] == ["n"]


def test_a_huge_constant_is_one_element() -> None:
    assert ops.full((10**6, 10**6), 1.5).numpy().strides == (0, 0)


def test_quotients_are_equal_whatever_the_steps_were() -> None:
    n = symbol("n")
    strided = (((n - 10) // 5 - 2) // 2 - 2) // 2 + 1
    assert strided == n // 20 - 1
    assert (n // 5 + 1) // 2 == (n + 5) // 10
    for size in range(40):
        steps = (((size - 10) // 5 - 2) // 2 - 2) // 2 + 1
        assert bind(strided, {"n": size}) == steps


def test_quotients_are_printed_as_python_reads_them() -> None:
    n = symbol("n")
    dims = [n // 4, n // 4 * 4, (n + 1) // 4 - 1, 5 - n // 3, n - n // 3]
    shown = [str(dim) for dim in dims]
    assert shown[:2] == ["n // 4", "4 * (n // 4)"]
    assert shown[2:] == ["(n - 3) // 4", "-(n // 3) + 5", "n - n // 3"]


def test_two_names_broadcast_to_neither_of_them() -> None:
    n, m, k = map(symbol, "nmk")
    assert joint([n, n]) == n
    assert joint([n, m]) == joint([m, n]) not in (n, m)
    assert joint([joint([n, m]), n]) == joint([n, m])
    assert joint([joint([n, m]), k]) == joint([n, joint([k, m])])
    assert joint([n, m]) != joint([n, k])


def test_what_is_never_1_is_the_extent_of_a_broadcast() -> None:
    n, m = symbol("n"), symbol("m")
    dims = [dim for dim in (2 * m, m + 2, 4 * m - 2) if isinstance(dim, Poly)]
    assert len(dims) == 3
    for dim in dims:
        assert joint([n, dim]) == joint([dim, n]) == dim
    more = m + 1
    assert isinstance(more, Poly)
    assert joint([n, more]) not in (n, more)


def test_a_chain_of_broadcasts_has_a_short_symbol() -> None:
    dim = symbol("n")
    for number in range(2000):
        dim = joint([dim, symbol(f"n{number}")])
    assert len(str(dim)) < 600


def test_an_extent_that_depends_on_data_gives_way_to_an_input() -> None:
    """A table cut to the length of the input gets the input's dimension."""
    n, m, cut = symbol("n"), symbol("m"), symbol("?0")
    left = Type(dtypes.float32, (n, 4))
    assert broadcast(left, Type(dtypes.float32, (cut, 4))) == (n, 4)
    shape = broadcast(left, Type(dtypes.float32, (m, 4)))
    assert shape is not None
    assert shape[0] not in (n, m)
    assert broadcast(Type(dtypes.float32, shape), left) == shape


@pytest.mark.parametrize(
    ("scale", "zero_point", "agree"),
    [
        ((), (1,), True),
        ((N,), (1,), True),
        ((1,), (N,), True),
        ((N,), (), True),
        ((N,), (4,), True),
        ((4,), (4,), True),
        ((4,), (5,), False),
        ((4,), (1,), False),
        ((4,), (), False),
        ((N, 3), (2, 3), True),
        ((N, 3), (2, 4), False),
        ((N, 3), (3,), False),
        ((N, 3), (), False),
    ],
)
def test_zero_points_have_the_shape_of_the_scale(
    scale: tuple[Any, ...], zero_point: tuple[Any, ...], agree: bool
) -> None:
    """A one-element vector is equivalent to a scalar; unknown dimensions match all."""
    types = Type(dtypes.float32, scale), Type(dtypes.uint8, zero_point)
    if agree:
        check_pair(*types)
    else:
        with pytest.raises(InvalidOperand, match="zero point of the shape"):
            check_pair(*types)


def test_a_maximum_is_decided_or_stays() -> None:
    assert maximum(3, 5) == 5
    assert minimum(N, N + 1) is N
    assert maximum(N + 4, 4) == N + 4  # extents are at least 0
    larger = maximum(N, 256)
    assert str(larger * 2 - 1) == "2 * max(n, 256) - 1"
    assert larger == maximum(256, N)
    assert [bind(larger, {"n": n}) for n in (3, 300)] == [256, 300]
    assert bind(larger, {"n": symbol("m")}) == maximum(symbol("m"), 256)
    assert list(symbols_of(larger)) == ["n"]


def test_bounds_of_a_maximum() -> None:
    larger = maximum(N - 7, 256)
    assert lower_bound(larger * larger + 1) == 256 * 256 + 1
    assert lower_bound(minimum(N, 256)) == 0
    assert lower_bound(minimum(N - 7, 256)) is None
    assert lower_bound(larger * -1) is None
    assert str(floor_div(larger + 255, 256)) == "(max(n - 7, 256) + 255) // 256"


def test_maxima_of_extents_are_known() -> None:
    nodes = [
        RawNode("Max", "", {}, ("x", "c"), ("a",)),
        RawNode("Min", "", {}, ("x", "c"), ("b",)),
    ]
    constants = {"c": np.array([1, 9, 256], np.int64)}
    shape = RawNode("Shape", "", {}, ("t",), ("x",))
    t = Type(np.dtype("float32"), (N, 5, N))
    raw = RawGraph("g", {"t": t}, ("a", "b"), (shape, *nodes), constants)
    graph = build(RawModel(raw, {"": 25}))
    known = [graph.types[name].known for name in ("a", "b")]
    texts = [list(map(str, k.tolist())) for k in known if k is not None]
    assert texts == [
        ["max(n, 1)", "9", "max(n, 256)"],
        ["min(n, 1)", "5", "min(n, 256)"],
    ]
