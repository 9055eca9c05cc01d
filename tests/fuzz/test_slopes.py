"""Checks of gradients by weights see a pass, a module or a plan that is wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from burn_import.passes import simplify
from burn_ir import Graph
from tests.fuzz import precision, slopes, training
from tests.fuzz.generator import FuzzCase, generate
from tests.fuzz.precision import check_dtype
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
}


@pytest.mark.parametrize("name", WEIGHTED)
def test_weighted_graphs_are_right(name: str) -> None:
    case = case_of(header(17) + WEIGHTED[name], {"x": floats(2, 2)})
    assert list(slopes.check_pass_slopes(case)) == []


def test_computed_values_are_no_constants() -> None:
    """Also after a pass stored them for the graph that it returned."""
    text = WEIGHTED["a pass makes an output constant"]
    graph = slopes.double_graph(case_of(header(17) + text, {"x": floats(2, 2)}))
    assert simplify(graph, ["fold_constants"]) is not graph
    assert slopes.read_constants(graph) == ["w"]


def test_one_element_a_channel_has_no_gradients() -> None:
    """A network whose batch normalization is refused in training has no finding."""
    case = generate(600010, "networks")
    assert any(node.op_type == "BatchNormalization" for node in case.model.graph.node)
    assert list(training.check_training(case)) == []
