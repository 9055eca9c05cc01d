"""Operators on NaN and infinities, and what their rules explain."""

from typing import Any

import numpy as np
import onnx.parser
import pytest

from tests.fuzz import not_finite
from tests.fuzz.checks import report_of
from tests.fuzz.generator import FuzzCase
from tests.fuzz.nodes import are_differences_explained
from tests.fuzz.shrink import measured
from tests.fuzz.test_found import floats, header

SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 3e38, -3e38, 0.5, -7.0, 100.0],
    np.float32,
).reshape(3, 4)
ONE = (
    "Abs Atan Ceil Celu Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish IsNaN "
    "LeakyRelu LogSoftmax Mish Neg Relu Round Selu Shrink Sigmoid Sign Sinh Softmax "
    "Softplus Softsign Sqrt Swish Tanh ThresholdedRelu"
)
TWO = "Add Sub Mul Div Max Min Pow PRelu Greater Equal"
BOTH = """g (float[3,4] x) => (float[4] m, float[3,4] c)
    <int64[1] axis = {0}>
    { m = ReduceMax <keepdims = 0> (x, axis)
      c = Clip (x) }"""


def graph(operators: str, operands: str) -> str:
    """The text of a graph of nodes with the same operands."""
    results = ", ".join(
        f"{'bool' if name in ('IsNaN', 'Greater', 'Equal') else 'float'}[3,4] y{i}"
        for i, name in enumerate(operators.split())
    )
    nodes = "\n".join(
        f"y{i} = {name} ({operands})" for i, name in enumerate(operators.split())
    )
    inputs = ", ".join(f"float[3,4] {name}" for name in operands.split(", "))
    return f"g ({inputs}) => ({results}) {{ {nodes} }}"


def case_of(text: str, feeds: list[dict[str, Any]]) -> FuzzCase:
    """The case of a model as text, with inputs of which the last are not finite."""
    case = measured(FuzzCase(0, onnx.parser.parse_model(text), feeds, {}))
    assert case is not None, "onnxruntime does not run it"
    return case


@pytest.mark.parametrize("operators", [ONE, TWO], ids=["one", "two"])
def test_elements_are_those_of_onnxruntime_eager_and_compiled(
    operators: str,
) -> None:
    finite = {"x": floats(3, 4), "z": floats(3, 4)[::-1].copy()}
    special = {"x": SPECIAL, "z": SPECIAL[:, [1, 0, 3, 2]].copy()}
    operands = "x" if operators is ONE else "x, z"
    feeds = [
        {k: v for k, v in run.items() if k in operands}
        for run in (finite, finite, special)
    ]
    report = report_of(case_of(header(24) + graph(operators, operands), feeds), False)
    assert report.findings == []
    assert report.kind == "right"


@pytest.mark.parametrize("ruled", ["ReduceMax", "Clip"])
def test_an_explained_node_does_not_hide_another(
    ruled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_of(
        header(20) + BOTH, [{"x": floats(3, 4)}] * 2 + [{"x": SPECIAL[::-1]}]
    )
    assert are_differences_explained(case, case.feeds[2])
    assert not are_differences_explained(case, case.feeds[0])
    rules = tuple(r for r in not_finite.NOT_FINITE if r.operator == ruled)
    monkeypatch.setattr(not_finite, "NOT_FINITE", rules)
    assert not are_differences_explained(case, case.feeds[2])


def test_a_node_of_a_body_is_explained_by_what_it_takes_from_outside() -> None:
    text = """g (bool b, float[3,4] x) => (float[n,4] y)
        { y = If (b) <then_branch = t () => (float[n,4] u) { u = Hardmax (x) },
                      else_branch = e () => (float[n,4] w) { w = Identity (x) }> }"""
    feeds = [{"b": np.array(True), "x": x} for x in (floats(3, 4), SPECIAL[::-1])]
    case = case_of(header(20) + text, [feeds[0], *feeds])
    assert are_differences_explained(case, feeds[1])
    assert not are_differences_explained(case, feeds[0])
