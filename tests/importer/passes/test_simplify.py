"""Properties of all passes together."""

import time
from dataclasses import replace

import numpy as np
import pytest

from burn_import.passes import OPTIONAL_PASSES, PASSES, simplify
from burn_import.passes.shapes.interleaved_writes import interleaved_writes
from burn_import.rewriting.arrays import allocated_bytes
from burn_import.rewriting.graphs import common_scope, rename
from burn_ir import Graph, RawGraph, RawModel, RawNode, build
from burn_ir.dim import symbol
from burn_ir.graph import Node
from burn_ir.ops.functions import Exp
from burn_ir.types import Type
from tests.importer.passes.cases import graph_of, listing, same_values

FLOAT = np.dtype(np.float32)


def raw(op: str, inputs: str, output: str, *scope: str) -> RawNode:
    return RawNode(op, "", {}, tuple(inputs.split()), (output,), scope=scope)


def raw_graph(*nodes: RawNode) -> Graph:
    """Return the graph of nodes that compute ``y`` from ``x``, with ``w`` and ``b``."""
    weights = {
        "w": np.random.default_rng(1).normal(size=(3, 3)).astype(FLOAT),
        "b": np.random.default_rng(2).normal(size=3).astype(FLOAT),
    }
    x = Type(FLOAT, (symbol("batch"), 5, 3))
    graph = RawGraph("graph", {"x": x}, ("y",), nodes, weights)
    return build(RawModel(graph, {"": 17}))


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(ValueError, match="expected passes among .*linear.* got bogus"):
        simplify(graph_of("g (float[3] x) => (float[3] y) { y = Exp(x) }"), ["bogus"])


def test_an_optional_pass_runs_by_name_alone() -> None:
    graph = graph_of("""g (float[N, 3] x) => (float[N, 4] y)
    <float[4, 3] w, float[4] d, float[4] s, float[4] b, float[4] m> {
        v = Constant<value = float[4] {0.5, 1.0, 2.0, 3.0}>()
        c = Gemm<transB = 1>(x, w, d)
        y = BatchNormalization(c, s, b, m, v)
    }""")
    assert {"BatchNormalization"} < {node.op.onnx for node in simplify(graph).nodes}
    every = [apply.__name__ for apply in (*PASSES, *OPTIONAL_PASSES)]
    after = simplify(graph, every)
    assert listing(after) == "y = Linear(x, w.times_s, d.times_s)"
    same_values(graph, after, 1e-5)


def test_nothing_to_do_gives_the_same_graph() -> None:
    graph = graph_of("g (float[N, 3] x) => (float[N, 3] y) { y = Exp(x) }")
    assert simplify(graph) is graph


def test_a_second_run_over_the_same_graph_gives_the_same_names() -> None:
    graph = raw_graph(
        raw("Exp", "b", "bias"), raw("MatMul", "x w", "p"), raw("Add", "p bias", "y")
    )
    first = simplify(graph)
    count = len(graph.constants)
    assert listing(simplify(graph)) == listing(first) == "y = Linear(x, w.T, bias)"
    assert len(graph.constants) == count


def test_random_operators_are_not_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = raw_graph(
        raw("Exp", "x", "a"), raw("Exp", "x", "b2"), raw("Sub", "a b2", "y")
    )
    assert len(simplify(graph, ["cse"]).nodes) == 2
    monkeypatch.setattr(Exp, "deterministic", False)
    assert len(simplify(graph, ["cse"]).nodes) == 3


def test_random_operators_are_not_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = raw_graph(raw("Exp", "b", "a"), raw("Mul", "x a", "y"))
    monkeypatch.setattr(Exp, "deterministic", False)
    assert simplify(graph, ["fold_constants"]) is graph


@pytest.mark.parametrize(
    ("first", "second", "left"),
    [((), ("a",), 2), (("a",), ("a", "b"), 2), (("a",), ("b",), 3), (("a",), (), 3)],
)
def test_nodes_are_merged_into_the_scope_around_them(
    first: tuple[str, ...], second: tuple[str, ...], left: int
) -> None:
    graph = raw_graph(
        raw("Exp", "x", "p", *first),
        raw("Exp", "x", "q", *second),
        raw("Sub", "p q", "y"),
    )
    assert len(simplify(graph, ["cse"]).nodes) == left


def test_a_fused_node_is_where_the_last_one_is() -> None:
    graph = raw_graph(raw("MatMul", "x w", "p", "a"), raw("Add", "p b", "y", "a"))
    assert simplify(graph).nodes[-1].scope == ("a",)
    graph = raw_graph(raw("MatMul", "x w", "p", "a", "c"), raw("Add", "p b", "y", "a"))
    assert simplify(graph).nodes[-1].scope == ("a",)


def test_scopes_that_disagree_have_the_common_part() -> None:
    node = Node(Exp(), ("x",), ("y",), scope=("a", "b"), classes=("A", "B"))
    other = replace(node, scope=("a", "c"), classes=("A", "C"))
    assert common_scope(node, other) == (("a",), ("A",))
    assert common_scope(other, node, node) == (("a",), ("A",))
    assert common_scope(node, node) == (node.scope, node.classes)


def test_a_derived_weight_knows_its_source() -> None:
    graph = raw_graph(
        raw("Transpose", "w", "turned"),
        raw("Exp", "turned", "large"),
        raw("MatMul", "x large", "p"),
        raw("Add", "p b", "y"),
    )
    (node,) = simplify(graph).nodes
    source, name = graph.constants.source, node.inputs[1]
    chain = [name]
    while chain[-1] in source:
        chain.append(source[str(chain[-1])])
    assert chain[-1] == "w"
    expected = np.exp(graph.constants["w"].T).T
    np.testing.assert_array_equal(graph.constants[str(name)], expected)


def test_a_weight_turned_twice_is_the_stored_one() -> None:
    graph = raw_graph(raw("Transpose", "w", "t"), raw("MatMul", "x t", "y"))
    assert listing(simplify(graph)) == "y = Linear(x, w)"


def test_a_derived_weight_is_not_called_like_a_value() -> None:
    graph = raw_graph(raw("Exp", "x", "w.T"), raw("MatMul", "w.T w", "y"))
    after = simplify(graph)
    assert after.nodes[-1].inputs == ("w.T", "w.T_")
    same_values(graph, after, 1e-5)
    same_values(graph, simplify(graph), 1e-5)


def test_a_value_is_no_constant_though_a_stored_array_has_its_name() -> None:
    graph = raw_graph(raw("Exp", "x", "v"), raw("Neg", "v", "y"))
    graph.constants.add("v", np.ones((2, 5, 3), FLOAT))
    assert simplify(graph) is graph


def test_weights_are_not_overwritten() -> None:
    graph = raw_graph(raw("MatMul", "x w", "p"), raw("Add", "p b", "y"))
    before = {name: array.copy() for name, array in graph.constants.items()}
    after = simplify(graph)
    for name, array in before.items():
        np.testing.assert_array_equal(after.constants[name], array)
    same_values(graph, after, 1e-5)


def test_what_literals_make_is_a_literal() -> None:
    graph = graph_of("""g (float[N, 3] x) => (float[N, 3] y) <float[3] w> {
        one = Constant<value = float[3] {1, 2, 3}>()
        a = Exp(one)
        b = Mul(a, w)
        c = Add(x, a)
        y = Sub(c, b)
    }""")
    simplify(graph)
    constants = graph.constants
    assert {"one", "a"} <= constants.literals
    assert "b" not in constants.literals
    assert constants.source == {"b": "w"}


def test_a_window_stays_a_formula() -> None:
    graph = graph_of("""g (float[N, 64] x) => (float[N, 64] y) {
        size = Constant<value = int64 {64}>()
        window = HannWindow(size)
        y = Mul(x, window)
    }""")
    assert [node.op.onnx for node in simplify(graph).nodes] == ["HannWindow", "Mul"]


def test_two_weights_have_no_one_source() -> None:
    graph = raw_graph(raw("Mul", "w b", "a"), raw("MatMul", "x a", "y"))
    simplify(graph, ["fold_constants"])
    assert "a" not in graph.constants.source


def test_memory_held() -> None:
    array = np.zeros((4, 5), np.float32)
    assert allocated_bytes(array, []) == 80
    assert allocated_bytes(array.T, [array]) == 0
    assert allocated_bytes(np.broadcast_to(array[:1], (1000, 5)), []) == 20


def test_a_body_takes_a_value_once_and_no_constants() -> None:
    graph = graph_of("""g (float[N, 3] x, bool c) => (float[N, 3] y) <float[3] w> {
        a = Exp(x)
        b = Neg(x)
        d = Abs(x)
        y = If(c) <
            then_branch = t () => (float[N, 3] p) { s = Mul(a, b) p = Mul(s, d) },
            else_branch = e () => (float[N, 3] q) { q = Sub(a, b) }
        >
    }""")
    kept = [graph.nodes[0], graph.nodes[-1]]
    renamed = rename(graph.with_nodes(kept), {"b": "a", "d": "w"})
    node = renamed.nodes[-1]
    assert node.inputs == ("c", "a")
    for body in node.op.bodies().values():
        assert body.inputs == ("a",)
    assert "Mul(s, w)" in listing(renamed)


def chain(count: int) -> Graph:
    """Return nodes, every other one an identity, on an input and a weight."""
    nodes, last = [], "x"
    for number in range(count // 4):
        nodes += [
            raw("Identity", last, f"i{number}"),
            raw("Exp", f"i{number}", f"e{number}"),
            raw("Exp", "b", f"f{number}"),
            raw("Add", f"e{number} f{number}", f"a{number}"),
        ]
        last = f"a{number}"
    return raw_graph(*nodes, raw("Identity", last, "y"))


def test_time_grows_with_the_number_of_nodes_only() -> None:
    times = []
    for count in (1000, 10000):
        graph = chain(count)
        start = time.process_time()
        simple = simplify(graph)
        times.append(time.process_time() - start)
        assert len(simple.nodes) == count // 2
    # A quadratic pass takes a hundred times as long.
    assert times[1] < 30 * times[0] + 1, times


def repeated_writes(count: int) -> Graph:
    """Return writes to the even rows of a tensor, and none to the others."""
    nodes, last = [], "x"
    for number in range(count):
        output = f"w{number}" if number < count - 1 else "y"
        nodes.append(raw("ScatterND", f"{last} even update", output))
        last = output
    update = np.ones((2, 3), FLOAT)
    weights = {"even": np.array([[0], [2]]), "update": update}
    inputs = {"x": Type(FLOAT, (4, 3))}
    graph = RawGraph("graph", inputs, ("y",), tuple(nodes), weights)
    return build(RawModel(graph, {"": 17}))


def test_writes_that_leave_rows_take_linear_time() -> None:
    times = []
    for count in (400, 8000):
        graph = repeated_writes(count)
        start = time.process_time()
        assert interleaved_writes(graph).operators == {"ScatterND"}
        times.append(time.process_time() - start)
    # A quadratic pass takes four hundred times as long.
    assert times[1] < 60 * times[0] + 1, times


def test_writes_of_updates_without_a_known_rank_stay() -> None:
    nodes = (
        raw("ScatterND", "x even update", "w"),
        raw("ScatterND", "w odd update", "y"),
    )
    weights = {"even": np.array([[0], [2]]), "odd": np.array([[1], [3]])}
    inputs = {"x": Type(FLOAT, (4, 3)), "update": Type(FLOAT, None)}
    graph = build(RawModel(RawGraph("graph", inputs, ("y",), nodes, weights), {"": 17}))
    assert interleaved_writes(graph).operators == {"ScatterND"}
