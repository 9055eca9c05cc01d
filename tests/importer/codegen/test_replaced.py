"""Stored arrays that a call replaces become buffers that the module sets."""

from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import burn
from burn import Tensor
from burn.dtypes import float32
from burn_import.codegen.gate.gate import check_body
from burn_import.compiler import compile_graph
from burn_import.options import Options
from burn_import.transform import WrongOptions
from burn_import.transform.prepared import prepared
from burn_ir import InvalidModel, RawGraph, RawModel, RawNode, Type, build
from burn_ir.dim import symbol
from burn_ir.evaluate import evaluate
from tests.modules import Array

ROWS = Type(float32, (symbol("n"), 3))
ONE = np.array(1.0, np.float32)


def node(op: str, inputs: str, outputs: str, scope: str = "", **attrs: Any) -> RawNode:
    path = tuple(scope.split(".")) if scope else ()
    classes = tuple(name.title() for name in path)
    names = tuple(inputs.split()), tuple(outputs.split())
    return RawNode(op, "", attrs, *names, outputs, path, classes)


def model(
    nodes: tuple[RawNode, ...],
    outputs: str,
    states: Mapping[str, Array],
    constants: Mapping[str, Array] | None = None,
) -> RawModel:
    """The model of one input ``x`` whose last outputs replace the states."""
    types = {name: Type(array.dtype, array.shape) for name, array in states.items()}
    inputs = {"x": ROWS, **types}
    names = tuple(outputs.split())
    stored = {"one": ONE, **(constants or {})}
    graph = RawGraph("net", inputs, names, nodes, stored, states=states)
    return RawModel(graph, {"": 23}, "pytorch 2.13.0")


def imported(raw: RawModel, options: Options | None = None) -> tuple[str, Any]:
    """Return the source of a model, and a constructor of modules with its weights."""
    options = options or Options()
    source = compile_graph(prepared(raw, options), options, options.weights)
    check_body(source.text.encode())
    module = ModuleType("replaced")
    module.__file__ = "<replaced>"
    exec(compile(source.text, "<replaced>", "exec"), module.__dict__)

    def make() -> Any:
        result = getattr(module, source.class_name)()
        return result.load_state_dict(dict(source.weights))

    return source.text, make


def agrees(raw: RawModel, options: Options | None = None) -> str:
    """Return the source, after three calls of two modules agree with the graph."""
    text, make = imported(raw, options)
    graph = build(raw)
    for output in (make(), make()):  # the second starts afresh
        held = [graph.constants[name] for name in graph.states]
        for size in (2, 4, 2):
            x = np.random.default_rng(size).normal(size=(size, 3)).astype(np.float32)
            expected = evaluate(graph, [Tensor(v, burn.Cpu()) for v in (x, *held)])
            result = output(burn.tensor(x))
            result = result if isinstance(result, tuple) else (result,)
            results = [value.numpy() for value in expected]
            held = results[len(graph.results) :]
            for a, b in zip(result, results, strict=False):
                np.testing.assert_array_equal(a.numpy(), b)
            kept = output.state_dict()
            for name, value in zip(graph.states, held, strict=True):
                np.testing.assert_array_equal(kept[name].numpy(), value)
    return text


def lines(text: str, start: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if start in line]


def ramp(*shape: int) -> Array:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def test_a_counter() -> None:
    nodes = (node("Add", "count step", "after"), node("Add", "x one", "y"))
    count, step = np.array(7), np.array(1)
    raw = model(nodes, "y after", {"count": count}, {"step": step})
    text = agrees(raw)
    assert lines(text, ".set(") == ["self.count.set(self.count + 1)"]
    assert "Outputs:\n    y  float32[n, 3]\n" in text


def test_what_is_returned_is_known_before_the_state_is_replaced() -> None:
    nodes = (node("Add", "total one", "after"), node("Add", "x total", "y"))
    text = agrees(model(nodes, "y total after", {"total": ramp(3)}))
    assert lines(text, "total")[-4:] == [
        "y = x + self.total",
        "total = self.total.value",
        "self.total.set(self.total + self.one)",
        "return NetOutput(y, total)",
    ]


def test_two_states_that_change_places() -> None:
    nodes = (node("Add", "x a", "y"),)
    agrees(model(nodes, "y b a", {"a": ramp(3), "b": -ramp(3)}))


def test_a_state_of_what_the_other_one_was() -> None:
    nodes = (
        node("Add", "x a", "y"),
        node("Add", "b one", "first"),
        node("Add", "a one", "second"),
    )
    agrees(model(nodes, "y first second", {"a": ramp(3), "b": -ramp(3)}))


def test_a_state_that_is_only_written() -> None:
    nodes = (node("ReduceSum", "x", "sum", keepdims=0), node("Add", "x one", "y"))
    agrees(model(nodes, "y sum", {"last": np.array(2.0, np.float32)}))


def layer(name: str, given: str, result: str, state: str) -> tuple[RawNode, ...]:
    """Return a linear layer with a running mean of its results over all calls."""
    inner = f"{name}.linear"
    return (
        node(
            "Gemm", f"{given} {inner}.weight {inner}.bias", f"{name}.1", inner, transB=1
        ),
        node("ReduceMean", f"{name}.1 axis", f"{name}.2", name, keepdims=0),
        node("Mul", f"{state} half", f"{name}.3", name),
        node("Add", f"{name}.3 {name}.2", f"{name}.after", name),
        node("Sub", f"{name}.1 {name}.after", f"{name}.5", name),
        node("Tanh", f"{name}.5", result, name),
    )


def weights(*names: str) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    stored = {"axis": np.array([0]), "half": np.array(0.5, np.float32)}
    for name in names:
        stored[f"{name}.linear.weight"] = rng.normal(size=(3, 3)).astype(np.float32)
        stored[f"{name}.linear.bias"] = rng.normal(size=3).astype(np.float32)
    return stored


def test_a_module_replaces_its_own_state() -> None:
    states = {"head.mean": ramp(3)}
    tail = node("Gemm", "z tail.linear.weight tail.linear.bias", "y", "tail.linear")
    nodes = (*layer("head", "x", "z", "head.mean"), tail)
    text = agrees(model(nodes, "y head.after", states, weights("head", "tail")))
    assert "class Head(nn.Module):" in text
    net, head = text.split("class Head(")
    assert "self.mean.set(mean)" in head
    assert "mean" not in net.partition("class Net(")[2]


def test_modules_with_states_of_their_own_share_a_class() -> None:
    states = {"layers.0.mean": ramp(3), "layers.1.mean": -ramp(3)}
    nodes = (
        *layer("layers.0", "x", "z", "layers.0.mean"),
        *layer("layers.1", "z", "y", "layers.1.mean"),
    )
    outputs = "y layers.0.after layers.1.after"
    text = agrees(model(nodes, outputs, states, weights("layers.0", "layers.1")))
    assert lines(text, ".set(") == ["self.mean.set(mean)"]
    assert "for layer in self.layers:" in text


def test_what_others_read_is_replaced_around_them() -> None:
    states = {"head.mean": ramp(3)}
    nodes = (
        *layer("head", "x", "z", "head.mean"),
        *layer("tail", "z", "y", "head.mean"),
    )
    text = agrees(model(nodes, "y head.after", states, weights("head", "tail")))
    assert lines(text, ".set(") == ["self.head.mean.set(mean)"]


def test_a_module_that_is_called_twice() -> None:
    states = {"head.mean": ramp(3)}
    first = layer("head", "x", "z", "head.mean")
    second = [
        replace(
            n,
            inputs=tuple(
                (
                    {"x": "z", "head.mean": "head.after"}.get(str(i), f"{i}_2")
                    if str(i) in ("x", "head.mean")
                    or str(i)[5:].isdigit()
                    or i == "head.after"
                    else i
                )
                for i in n.inputs
            ),
            outputs=tuple("y" if o == "z" else f"{o}_2" for o in n.outputs),
        )
        for n in first
    ]
    raw = model((*first, *second), "y head.after_2", states, weights("head"))
    text = agrees(raw)
    assert text.count(".set(") == 1


def test_a_module_of_nothing_else_is_left_to_the_one_around() -> None:
    nodes = (
        node("ReduceMean", "x axis", "a", "watch", keepdims=0),
        node("Mul", "watch.mean half", "b", "watch"),
        node("Add", "a b", "c", "watch"),
        node("Tanh", "c", "d", "watch"),
        node("Exp", "d", "e", "watch"),
        node("Add", "x one", "y"),
    )
    agrees(model(nodes, "y e", {"watch.mean": ramp(3)}, weights()))


def test_in_one_class() -> None:
    states = {"head.mean": ramp(3)}
    nodes = (*layer("head", "x", "z", "head.mean"), node("Add", "z one", "y"))
    raw = model(nodes, "y head.after", states, weights("head"))
    text, make = imported(raw, Options(flat=True))
    assert text.count(".set(") == 1
    x = burn.tensor(ramp(2, 3))
    result = make()
    assert np.any(result(x).numpy() != result(x).numpy())


def test_in_another_dtype() -> None:
    states = {"head.mean": ramp(3)}
    nodes = (*layer("head", "x", "z", "head.mean"), node("Add", "z one", "y"))
    raw = model(nodes, "y head.after", states, weights("head"))
    _, make = imported(raw, Options(dtype="float64"))
    result = make()
    result(burn.tensor(ramp(2, 3).astype(np.float64)))
    assert result.state_dict()["head.mean"].dtype == burn.float64


def test_a_state_keeps_its_type() -> None:
    nodes = (node("Cast", "x", "y", to=7), node("Add", "total one", "after"))
    raw = model(nodes, "y y", {"total": ramp(3)})
    with pytest.raises(
        InvalidModel, match=r"state 'total' to stay float32\[3\], got int64"
    ):
        build(raw)


def test_a_part_of_a_model_with_states_is_refused() -> None:
    nodes = (node("Add", "total one", "after"), node("Add", "x total", "y"))
    raw = model(nodes, "y after", {"total": ramp(3)})
    with pytest.raises(WrongOptions, match="since calls change 'total'"):
        prepared(raw, Options(outputs=("y",)))


def test_a_state_is_given_no_shape() -> None:
    nodes = (node("Add", "total one", "after"), node("Add", "x total", "y"))
    raw = model(nodes, "y after", {"total": ramp(3)})
    with pytest.raises(WrongOptions, match="an input to give a shape"):
        prepared(raw, Options(shapes={"total": (4,)}))
