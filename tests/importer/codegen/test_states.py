"""Random nodes become layers that hold a state and no weights."""

from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

import burn
from burn.dtypes import bool_, float32
from burn_import.codegen.gate.gate import check_body
from burn_import.compiler import compile_graph
from burn_import.options import Options
from burn_ir import RawGraph, RawModel, RawNode, Type, build
from burn_ir.dim import symbol

X = np.random.default_rng(3).standard_normal((4, 6)).astype(np.float32)
ROWS = Type(float32, (symbol("n"), 6))
WEIGHTS = {
    name: np.random.default_rng(4).standard_normal(shape).astype(np.float32)
    for name, shape in {
        "net.0.weight": (5, 6),
        "net.0.bias": (5,),
        "net.3.weight": (2, 5),
        "net.3.bias": (2,),
    }.items()
}
TRAINS = {"r": np.array(0.3, np.float32), "t": np.array(True)}


def node(op: str, inputs: str, outputs: str, **attrs: Any) -> RawNode:
    return RawNode(op, "", attrs, tuple(inputs.split()), tuple(outputs.split()), "")


def imported(graph: RawGraph) -> tuple[str, Any]:
    """Return the source for a graph, and its class."""
    options = Options()
    source = compile_graph(build(RawModel(graph, {"": 17})), options, options.weights)
    check_body(source.text.encode())
    module = ModuleType("drawn")
    module.__file__ = "<drawn>"
    exec(compile(source.text, "<drawn>", "exec"), module.__dict__)

    def make() -> Any:
        model = getattr(module, source.class_name)()
        return model.load_state_dict(dict(source.weights))

    return source.text, make


def test_every_node_has_a_state_of_its_own() -> None:
    nodes = (
        node("RandomNormalLike", "x", "a"),
        node("RandomNormalLike", "x", "b"),
        node("RandomUniform", "", "c", shape=(4, 6), low=2.0, high=3.0, seed=5.0),
        node("Add", "a b", "d"),
        node("Mul", "d c", "y"),
    )
    text, make = imported(RawGraph("net", {"x": ROWS}, ("y", "a", "b", "c"), nodes, {}))
    assert "self.random_normal_like = nn.RandomNormalLike()" in text
    assert "self.random_normal_like_2 = nn.RandomNormalLike()" in text
    assert "nn.RandomUniform((4, 6), low=2.0, high=3.0, seed=5)" in text
    assert "ops." not in text
    model = make()
    assert list(model.boxes()) == []
    y, a, b, c = (t.numpy() for t in model(burn.tensor(X)))
    np.testing.assert_array_equal(y, (a + b) * c)
    assert not np.any(a == b)
    assert np.all((c >= 2.0) & (c < 3.0))
    _, a2, _, c2 = (t.numpy() for t in model(burn.tensor(X)))
    assert not np.any(a2 == a)
    np.testing.assert_array_equal(make()(burn.tensor(X))[3].numpy(), c)
    assert not np.any(c2 == c)


def test_dropout_in_training_stands_in_its_sequence() -> None:
    nodes = (
        node("Gemm", "x net.0.weight net.0.bias", "a", transB=1),
        node("Relu", "a", "b"),
        replace(node("Dropout", "b r t", "c"), scope=("net", "2")),
        node("Gemm", "c net.3.weight net.3.bias", "y", transB=1),
    )
    text, make = imported(
        RawGraph("net", {"x": ROWS}, ("y",), nodes, {**WEIGHTS, **TRAINS})
    )
    assert "ops.relu, nn.DynamicDropout(0.3), nn.Linear(5, 2)" in " ".join(text.split())
    model = make()
    first, second = (model(burn.tensor(X)).numpy() for _ in range(2))
    assert np.any(first != second)


def test_the_mode_and_the_ratio_may_come_in() -> None:
    inputs = {"x": ROWS, "r": Type(float32, ()), "t": Type(bool_, ())}
    nodes = (node("Dropout", "x r t", "y mask"),)
    text, make = imported(RawGraph("net", inputs, ("y", "mask"), nodes, {}))
    assert "y, mask = self.dropout(x, t, r)" in text
    model, ratio = make(), burn.tensor(np.array(0.5, np.float32))
    y, mask = model(burn.tensor(X), ratio, burn.tensor(np.array(False)))
    np.testing.assert_array_equal(y.numpy(), X)
    assert mask.numpy().all()
    y, mask = model(burn.tensor(X), ratio, burn.tensor(np.array(True)))
    np.testing.assert_allclose(y.numpy(), X * mask.numpy() / 0.5)
    assert 0 < mask.numpy().mean() < 1


def test_branches_own_their_layers() -> None:
    then = (
        node("Dropout", "x r t", "dropped"),
        node("RandomNormal", "", "u", shape=(4, 6)),
    )
    bodies = {
        "then_branch": RawGraph(
            "then", {}, ("z",), (*then, node("Add", "dropped u", "z")), {}
        ),
        "else_branch": RawGraph(
            "else", {}, ("z",), (node("RandomUniformLike", "x", "z", seed=2.0),), {}
        ),
    }
    inputs = {"c": Type(bool_, ()), "x": Type(float32, (4, 6))}
    graph = RawGraph("net", inputs, ("y",), (node("If", "c", "y", **bodies),), TRAINS)
    text, make = imported(graph)
    assert text.count("nn.Random") == 2
    model = make()
    for condition in (True, False):
        c = burn.tensor(np.array(condition))
        first, second = (model(c, burn.tensor(X)).numpy() for _ in range(2))
        assert np.any(first != second)
        assert bool(np.all((first >= 0) & (first < 1))) is not condition


def test_a_model_without_inputs() -> None:
    nodes = (node("RandomNormal", "", "y", shape=(2, 3, 4), dtype=11),)
    text, make = imported(RawGraph("net", {}, ("y",), nodes, {}))
    assert text.startswith('"""Net: y.\n\nOutputs:')
    assert "nn.RandomNormal((2, 3, 4), dtype=burn.float64)" in text
    drawn = make()()
    assert (drawn.shape, drawn.dtype) == ((2, 3, 4), burn.float64)
