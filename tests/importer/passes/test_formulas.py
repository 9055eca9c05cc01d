"""Passes that recover one operator from random forms of its formula."""

import time
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from burn.dtypes import step
from burn_import.passes import OPTIONAL_PASSES, PASSES, simplify
from burn_import.rewriting.pattern import stands_for
from burn_ir import Graph, RawGraph, RawModel, RawNode, build
from burn_ir.dim import symbol
from burn_ir.types import Type
from tests.importer.passes.cases import graph_of, listing, same_values
from tests.importer.passes.formulas import FORMULAS, PARTS, mixed
from tests.importer.passes.movers import moved
from tests.sampling import example_count

FLOAT = np.dtype(np.float32)


@pytest.mark.parametrize("name", FORMULAS)
@settings(max_examples=example_count(25), suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_way_to_write_a_formula_is_found(name: str, data: Any) -> None:
    text, operator = data.draw(FORMULAS[name])
    graph = graph_of(text)
    actual = simplify(graph, [name])
    assert [node.op.onnx for node in actual.nodes] == ["Neg", operator, "Neg"], text
    same_values(graph, actual, 1e-10)


@settings(max_examples=example_count(40), suppress_health_check=[HealthCheck.too_slow])
@given(text=mixed(), data=st.data())
def test_graphs_of_several_formulas_keep_their_values(text: str, data: Any) -> None:
    graph = graph_of(text)
    for names in ([data.draw(st.sampled_from(sorted(PARTS)))], None):
        same_values(graph, simplify(graph, names), 1e-10)


@settings(max_examples=example_count(60), suppress_health_check=[HealthCheck.too_slow])
@given(text=moved(), data=st.data())
def test_graphs_of_layers_and_movements_keep_their_values(text: str, data: Any) -> None:
    graph = graph_of(text)
    every = [apply.__name__ for apply in (*PASSES, *OPTIONAL_PASSES)]
    for names in ([data.draw(st.sampled_from(every))], None, every):
        same_values(graph, simplify(graph, names), 1e-10)


def scoped(*scopes: tuple[str, ...]) -> Graph:
    """Return SiLU between two nodes, with the given scopes for its own two."""
    first, last = scopes
    nodes = (
        RawNode("Exp", "", {}, ("x",), ("a",), scope=("before",)),
        RawNode("Sigmoid", "", {}, ("a",), ("s",), scope=first),
        RawNode("Mul", "", {}, ("a", "s"), ("y",), scope=last),
    )
    x = Type(FLOAT, (symbol("batch"), 5, 3))
    return build(RawModel(RawGraph("graph", {"x": x}, ("y",), nodes, {}), {"": 17}))


@pytest.mark.parametrize(
    ("first", "last", "scope"),
    [
        (("a", "act"), ("a", "act"), ("a", "act")),
        (("a", "act"), ("a",), ("a",)),
        (("a", "gate"), ("a", "act"), ("a",)),
        (("b",), ("a",), ()),
    ],
)
def test_the_node_has_the_scope_of_all_parts(
    first: tuple[str, ...], last: tuple[str, ...], scope: tuple[str, ...]
) -> None:
    node = simplify(scoped(first, last)).nodes[-1]
    assert (node.op.onnx, node.scope) == ("Swish", scope)


def test_a_weight_to_which_a_norm_adds_1_is_what_the_file_has() -> None:
    graph = graph_of("""g (float[N, 5, 3] x) => (float[N, 5, 3] y) <float[3] w> {
        axes = Constant<value = int64[1] {-1}>()
        one = Constant<value = float {1.0}>()
        eps = Constant<value = float {0.00001}>()
        s = Mul(x, x)
        m = ReduceMean(s, axes)
        e = Add(m, eps)
        r = Sqrt(e)
        n = Div(x, r)
        k = Add(one, w)
        y = Mul(n, k)
    }""")
    after = simplify(graph)
    assert listing(after) == "k = Add(one, w)\ny = RMSNormalization(x, k)"
    same_values(graph, after, 1e-5)


def test_a_weight_behind_a_node_that_goes_belongs_to_the_norm() -> None:
    graph = graph_of("""g (float[N, 5, 3] x) => (float[N, 5, 3] y) <float[3] w> {
        axes = Constant<value = int64[1] {-1}>()
        two = Constant<value = float {2.0}>()
        eps = Constant<value = float {0.00001}>()
        c = Cast<to = 1>(x)
        s = Pow(c, two)
        m = ReduceMean(s, axes)
        e = Add(m, eps)
        r = Sqrt(e)
        n = Div(c, r)
        h = Cast<to = 1>(n)
        y = Mul(w, h)
    }""")
    after = simplify(graph)
    assert listing(after) == "y = RMSNormalization(x, w)"
    same_values(graph, after, 1e-5)


def test_a_weight_that_ends_in_the_stored_one_is_that() -> None:
    graph = graph_of("""g (float[N, 6, 4] x) => (float[N, 6, 4] y)
    <float[6] w, float[6] b> {
        groups = Constant<value = int64[3] {0, 2, -1}>()
        one = Constant<value = float[2] {1.0, 1.0}>()
        zero = Constant<value = float[2] {0.0, 0.0}>()
        axes = Constant<value = int64[1] {1}>()
        v = Unsqueeze(w, axes)
        c = Unsqueeze(b, axes)
        r = Reshape(x, groups)
        n = InstanceNormalization(r, one, zero)
        k = Shape(x)
        o = Reshape(n, k)
        p = Mul(o, v)
        y = Add(p, c)
    }""")
    after = simplify(graph)
    assert listing(after) == "y = GroupNormalization<num_groups=2>(x, w, b)"
    same_values(graph, after, 1e-5)


def test_groups_normalized_by_their_mean() -> None:
    graph = graph_of("""g (float[N, 6, 4] x) => (float[N, 6, 4] y)
    <float[6, 1] w, float[6, 1] b> {
        groups = Constant<value = int64[3] {0, 2, 12}>()
        axes = Constant<value = int64[1] {2}>()
        eps = Constant<value = float {0.001}>()
        r = Reshape(x, groups)
        m = ReduceMean(r, axes)
        d = Sub(r, m)
        s = Mul(d, d)
        v = ReduceMean(s, axes)
        e = Add(v, eps)
        f = Sqrt(e)
        n = Div(d, f)
        k = Shape(x)
        o = Reshape(n, k)
        p = Mul(o, w)
        y = Add(p, b)
    }""")
    after = simplify(graph)
    (node,) = after.nodes
    assert node.op.attrs() == {"num_groups": 2, "epsilon": 0.001, "stash_type": 1}
    same_values(graph, after, 1e-5)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_a_number_stands_for_what_rounds_to_it(dtype: Any) -> None:
    for value in (0.044715, 1 / 6, 2**0.5, 0.5, 0.0, -0.5):
        rounded = np.array([value], dtype)
        assert stands_for(rounded, value)
        if value:
            off = 1 + 2 * step(np.dtype(dtype))
            assert not stands_for(np.array(float(rounded[0]) * off, dtype), value)
            assert not stands_for(np.array(float(rounded[0]) / off, dtype), value)
            assert not stands_for(-rounded, value)


def test_the_number_before_is_another_one() -> None:
    assert not stands_for(np.array(0.99951171875, np.float16), 1.0)
    assert not stands_for(np.array(0.99609375, ml_dtypes.bfloat16), 1.0)


def test_a_double_may_have_the_digits_of_a_float() -> None:
    assert stands_for(np.array(1.41421354), 2**0.5)
    assert not stands_for(np.array(1.414214), 2**0.5)
    assert not stands_for(np.array(1e-9), 0.0)


def test_what_is_no_number_stands_for_none() -> None:
    assert stands_for(np.array(2, np.int64), 2.0)
    assert not stands_for(np.array(3, np.int64), 2.0)
    assert not stands_for(np.array(True), 1.0)
    assert not stands_for(np.array(["1"], object), 1.0)
    assert not stands_for(np.ones(2), 1.0)


def gates(count: int) -> Graph:
    """Return a chain of SiLUs; every other sigmoid has a second reader."""
    nodes, last = [], "x"
    for number in range(count):
        s, m, y = (f"{kind}{number}" for kind in "smy")
        nodes += [
            RawNode("Sigmoid", "", {}, (last,), (s,)),
            RawNode("Mul", "", {}, (last, s), (m,)),
            RawNode("Sub", "", {}, (m, s if number % 2 else last), (y,)),
        ]
        last = y
    x = Type(FLOAT, (symbol("batch"), 5, 3))
    raw = RawGraph("graph", {"x": x}, (last,), tuple(nodes), {})
    return build(RawModel(raw, {"": 17}))


def test_time_grows_with_the_number_of_nodes_only() -> None:
    times = []
    for count in (500, 5000):
        graph = gates(count)
        start = time.process_time()
        after = simplify(graph, FORMULAS)
        times.append(time.process_time() - start)
        swish = [node for node in after.nodes if node.op.onnx == "Swish"]
        assert len(swish) == count // 2
    # A quadratic pass takes a hundred times as long.
    assert times[1] < 30 * times[0] + 1, times
