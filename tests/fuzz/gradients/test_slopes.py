"""Checks of gradients by weights see a pass, a module or a plan that is wrong."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn_import.passes import simplify
from burn_ir import Graph
from tests.conformance.run import built
from tests.fuzz.errors import precision
from tests.fuzz.errors.precision import check_dtype
from tests.fuzz.generator import FuzzCase, generate
from tests.fuzz.gradients import slopes, training
from tests.fuzz.gradients.weights import (
    is_below_float32,
    is_below_float64,
    narrowed,
    read_constants,
)
from tests.fuzz.subject import called
from tests.fuzz.test_found import case_of, floats, header

SEED = 0


@pytest.fixture(scope="module")
def case() -> FuzzCase:
    return generate(SEED, "networks")


def test_a_network_is_right(case: FuzzCase) -> None:
    graph = slopes.double_graph(case)
    moves = slopes.directions(case, graph)
    assert len(moves) > 3
    assert slopes.slope_of(graph, slopes.double_inputs(case, graph), moves) is not None
    assert list(slopes.check_pass_slopes(case)) == []


def test_a_pass_that_scales_a_weight(
    case: FuzzCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scaled(graph: Graph, names: Sequence[str] | None = None) -> Graph:
        weight = next(iter(slopes.directions(case, graph)))
        array = graph.constants[weight]
        other = graph.constants.add("scaled", array * 1.01, weight)
        nodes = [
            node.with_op(
                node.op, tuple(other if n == weight else n for n in node.inputs)
            )
            for node in graph.nodes
        ]
        return replace(graph, nodes=tuple(nodes))

    monkeypatch.setattr(slopes, "simplify", scaled)
    assert [name for name, _ in slopes.check_pass_slopes(case)]


def test_a_module_with_wrong_gradients(
    case: FuzzCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = training._gradients

    def wrong(*args: Any) -> Any:
        grads = right(*args)
        assert grads is not None
        largest = max(range(len(grads)), key=lambda i: float(abs(grads[i]).max()))
        grads[largest] = grads[largest] * np.float32(1.01)
        return grads

    monkeypatch.setattr(training, "_gradients", wrong)
    names = [name for name, _ in training.check_training(case)]
    assert "compiled gradients" in names


@pytest.mark.parametrize("factor", [1.01, 0.0])
def test_gradients_along_the_weights(
    factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gradients of which all are wrong in the same way are beside the differences."""
    text = f"""g (float[2,2] x) => (float[a,b] y)
        {WEIGHTS} {{ t = Tanh (w)  s = MatMul (x, t)  y = Sigmoid (s) }}"""
    case = case_of(header(17) + text, {"x": floats(2, 2)})
    assert list(training.check_training(case)) == []
    right = training._gradients

    def wrong(*args: Any) -> Any:
        grads = right(*args)
        assert grads is not None
        return [grad * np.float32(factor) for grad in grads]

    monkeypatch.setattr(training, "_gradients", wrong)
    names = [name for name, _ in training.check_training(case)]
    assert "gradients by parameters" in names


def test_another_dtype_is_compared(
    case: FuzzCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that computes something else is outside of the bounds."""
    case = replace(case, seed=2)  # in float64
    assert list(check_dtype(case)) == []

    def of_others(module: Any, feeds: Mapping[str, Any]) -> list[Any]:
        return called(module, {name: 2 * x for name, x in feeds.items()})

    monkeypatch.setattr(precision, "called", of_others)
    assert [name for name, _ in check_dtype(case)]


WEIGHTS = "<float[2,2] w = {0.1, -0.4, 0.7, 0.2}>"
#: Graphs that depend on a weight in ways that passes or the loss can hide.
WEIGHTED = {
    "a pass makes an output constant": f"""
        g (float[2,2] x) => (float[a,b] y, float[c,d] z)
        {WEIGHTS} {{ y = Atan (w)  u = Tanh (w)  z = Mul (x, u) }}""",
    "no result is floating": f"""g (float[2,2] x) => (int64[a,b] y)
        {WEIGHTS} {{ s = Mul (x, w)  y = ArgMax (s) }}""",
    "a body returns a constant": f"""g (float[2,2] x) => (float[a,b] y, float[c,d] z)
        {WEIGHTS} {{ t = Tanh (w)  s = ReduceSum <keepdims = 0> (x)  c = Cast <to=9> (s)
        y = If (c) <
            then_branch = f () => (float[2,2] u) {{ u = Identity (t) }},
            else_branch = f () => (float[2,2] v) {{ v = Exp (t) }}>
        z = Sin (w) }}""",
}


@pytest.mark.parametrize("name", WEIGHTED)
def test_weighted_graphs_are_right(name: str) -> None:
    case = case_of(header(17) + WEIGHTED[name], {"x": floats(2, 2)})
    assert list(slopes.check_pass_slopes(case)) == []


def test_a_body_that_loses_a_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that puts a copy of a weight's contents into a body is seen."""
    text = header(17) + WEIGHTED["a body returns a constant"]
    case = case_of(text, {"x": floats(2, 2)})
    monkeypatch.setattr(slopes, "read_constants", _read_outside)
    names = [name for name, _ in slopes.check_pass_slopes(case)]
    assert "slopes after fold_constants" in names


def _read_outside(graph: Graph) -> list[str]:
    """The constants that ``graph`` reads itself."""
    names = {name for node in graph.nodes for name in node.inputs}
    return [name for name in read_constants(graph) if name in names]


CASTS = {"float8": 17, "float16": 10, "bfloat16": 16, "int8": 3, "float64": 11}


@pytest.mark.parametrize("dtype", CASTS)
@pytest.mark.parametrize("place", ["graph", "body"])
def test_rounded_weights(dtype: str, place: str) -> None:
    """Weights that are rounded on the way are told by the dtypes of values."""
    cast = f"c = Cast <to={CASTS[dtype]}> (t) y = Cast <to=1> (c)"
    if place == "body":
        branch = f"{{ {cast} }}"
        cast = f"""y = If (b) <then_branch = f () => (float[2,2] y) {branch},
            else_branch = f () => (float[2,2] e) {{ e = Identity (t) }}>"""
    text = f"""g (bool b) => (float[a,b] y) {WEIGHTS} {{ t = Tanh (w)  {cast} }}"""
    case = case_of(header(21) + text, {"b": np.array(True)})
    with tempfile.TemporaryDirectory() as folder:
        graph = built(case.model, Path(folder))
    assert narrowed(graph, "w", is_below_float32) == (dtype != "float64")
    double = slopes.double_graph(case)
    assert narrowed(double, "w", is_below_float64) == (dtype == "float8")
    assert list(slopes.check_pass_slopes(case)) == []


@pytest.mark.parametrize("precision", [1, 11])
def test_weights_of_a_softmax_in_another_dtype(precision: int) -> None:
    text = f"""g (float[1,1,2,2] x) => (float[a,b,c,d] y)
        <float[1,1,2,2] w = {{0.1, -0.4, 0.7, 0.2}}>
        {{ y = Attention <softmax_precision: int = {precision}> (x, w, x) }}"""
    case = case_of(header(23) + text, {"x": floats(1, 1, 2, 2)})
    graph = slopes.double_graph(case)
    assert narrowed(graph, "w", is_below_float64) == (precision == 1)
    assert list(slopes.check_pass_slopes(case)) == []


def test_a_weight_that_is_an_angle_as_well_is_not_moved() -> None:
    """It is stored in float32 too, for what computes a rotation."""
    text = f"""g (float[2,2] x) => (float[a,b] y, float[c,d] z)
        {WEIGHTS[:-1]}, float[2,2] v = {{0.3, 0.2, 0.5, -0.1}}>
        {{ a = Identity (w) b = Identity (w) s = Sin (b)
           y = Add (a, x) t = Mul (s, x) z = Mul (t, v) }}"""
    case = case_of(header(17) + text, {"x": floats(2, 2)})
    assert list(training.check_training(case)) == []


def test_computed_values_are_no_constants() -> None:
    """Also after a pass stored them for the graph that it returned."""
    text = WEIGHTED["a pass makes an output constant"]
    graph = slopes.double_graph(case_of(header(17) + text, {"x": floats(2, 2)}))
    assert simplify(graph, ["fold_constants"]) is not graph
    assert read_constants(graph) == ["w"]


def test_one_element_a_channel_has_no_gradients() -> None:
    """A network whose batch normalization is refused in training has no finding."""
    case = generate(600010, "networks")
    assert any(node.op_type == "BatchNormalization" for node in case.model.graph.node)
    assert list(training.check_training(case)) == []


def test_errors_of_float32_beside_a_pole_are_measured() -> None:
    """Acosh turns a rounding of 1.00002 into one of the fifth digit."""
    text = """g (float[5] x) => (float[5] y) { z = Cosh (x)
        y = Acosh (z) }"""
    x = np.array([-0.00609189, 1.3, 0.7, -2.1, 0.5], np.float32)
    assert list(check_dtype(case_of(header(18) + text, {"x": x}))) == []


def test_zeros_of_float32_that_are_small_numbers_in_float64() -> None:
    text = """g (float[2,2] x) => (int64[2,n] y) {{ z = {} (x)
        y = NonZero (z) }}"""
    x = np.array([[110, 130], [0.5, -1]], np.float32)
    for operator in ("LogSoftmax", "Relu"):
        case = case_of(header(13) + text.format(operator), {"x": x})
        assert list(check_dtype(case)) == []


def test_other_zeros_in_another_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """g (float[2,2] x) => (int64[2,n] y) { z = Relu (x)
        y = NonZero (z) }"""
    case = case_of(header(13) + text, {"x": floats(2, 2)})

    def negated(module: Any, feeds: Mapping[str, Any]) -> list[Any]:
        return called(module, {name: -x for name, x in feeds.items()})

    monkeypatch.setattr(precision, "called", negated)
    assert [name for name, _ in check_dtype(case)]


def test_what_a_fill_is_folded_from_is_a_number() -> None:
    text = """g (int64[n] x, float[n,3] u) => (float[n,4] y, float[n,3] z)
        <float[4] w = {0.1,0.5,0.3,0.2}, float[3] scale = {1,2,3}, int64 depth = {4},
         float[2] more = {1,2}, int64[1] first = {0}, int64[1] last = {2}>
        { angle = Acos (w)
          all = Concat <axis: int = 0> (angle, more)
          values = Slice (all, first, last)
          y = OneHot (x, depth, values)
          z = Mul (u, scale) }"""
    feeds = {"x": np.array([0, 2, 1], np.int64), "u": floats(3, 3)}
    case = case_of(header(13) + text, feeds, profile="networks")
    assert list(training.check_training(case)) == []


def test_errors_on_scales_of_extents_say_nothing() -> None:
    text = """g (float[n,1,4,k] x, float[4] v) => (float[a,b,c] y)
        { u = Upsample <mode = "linear", scales = [1.0, 1.0, 1.0, 1.0]> (x)
          y = MatMul (v, u) }"""
    case = case_of(header(8) + text, {"x": floats(3, 1, 4, 2), "v": floats(4)})
    assert list(check_dtype(case)) == []
