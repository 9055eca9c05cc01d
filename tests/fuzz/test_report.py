"""Tests that are printed for failures: they run, and keep the model and the inputs."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.fuzz import test_found
from tests.fuzz.checks import Finding
from tests.fuzz.generator import FuzzCase, generate
from tests.fuzz.report import literal, model_of, model_text, source_of_test

FINDING = Finding("different", "eager default", 'output 0: "1" of 2', "first size")


def model(name: str, bound: float) -> onnx.ModelProto:
    """A sum with a stored number, whose input has a name."""
    graph = helper.make_graph(
        [helper.make_node("Add", [name, "c"], ["y"])],
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
        [numpy_helper.from_array(np.array([bound, 0.1], np.float32), "c")],
    )
    opset = helper.make_opsetid("", 18)
    return helper.make_model(graph, opset_imports=[opset], ir_version=9)


@pytest.mark.parametrize("name", ["x", "layer.0/x", 'a"b', "a\nb", "\\", "größe"])
@pytest.mark.parametrize("bound", [0.1, 1e-30, np.inf, -np.nan])
def test_the_text_is_the_model(name: str, bound: float) -> None:
    source = f'text = """{model_text(model(name, bound))}"""'
    space: dict[str, Any] = {}
    exec(source, space)
    parsed = model_of(space["text"])
    wanted = model(name, bound)
    assert parsed.graph.node == wanted.graph.node
    stored = numpy_helper.to_array(parsed.graph.initializer[0])
    assert (
        stored.tobytes() == numpy_helper.to_array(wanted.graph.initializer[0]).tobytes()
    )


@pytest.mark.parametrize(
    "value",
    [
        np.array([[1.5, np.nan], [-np.inf, 0.1]], np.float32),
        np.zeros((0, 3), np.int64),
        np.array(["a", "'\""], object),
        np.array(True),
        [np.ones(2, np.float16)],
    ],
    ids=str,
)
def test_literals(value: Any) -> None:
    again = eval(literal(value), {"np": np})
    np.testing.assert_array_equal(again, value)
    assert getattr(again, "dtype", None) == getattr(value, "dtype", None)


def test_a_printed_test_runs_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It passes where the project is right, and compares the outputs of the model."""
    feeds = {"x": np.array([1.0, 2.0], np.float32)}
    case = FuzzCase(3, model("x", 0.5), [feeds] * 3, {"y": 0.0})
    source = source_of_test(case, FINDING, "mixed_3")
    space = dict(vars(test_found))
    exec(source, space)
    space["test_eager_default_different_mixed_3"]()
    with pytest.raises(AssertionError):
        exec(source.replace("0.5", "0.5").replace('"right"', '"different"'), space)
        space["test_eager_default_different_mixed_3"]()


@pytest.mark.parametrize("profile", ["networks", "types"])
def test_whole_graphs_as_tests(profile: str) -> None:
    case = generate(3, profile)
    source = source_of_test(case, FINDING, f"{profile}_3")
    compile(source, "test", "exec")
