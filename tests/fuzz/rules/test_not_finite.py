"""Operators on NaN and infinities, and what their rules explain."""

from dataclasses import replace
from typing import Any

import numpy as np
import onnx.parser
import pytest

from tests.fuzz import checks, nodes
from tests.fuzz.checks import expected_runs, of_finite_passes, report_of
from tests.fuzz.generator import FuzzCase
from tests.fuzz.nodes import are_differences_explained
from tests.fuzz.passes import results
from tests.fuzz.rules import not_finite
from tests.fuzz.shrink import measured
from tests.fuzz.subject import IMPORTS, imported
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


INFINITE_AND_NAN = np.array([np.inf, np.nan, 1, 2], np.float32)
OVERFLOWING = np.full((1, 1, 6), -3.1594439e37, np.float32)
PRODUCT = np.array([1e-30, 1e-30, np.inf, 2], np.float32)
EQUAL = np.array([[0.1], [0.53577405], [np.nan]] * 2, np.float32)
EQUAL = np.tile(EQUAL.reshape(2, 3, 1), (1, 1, 3))
PRODUCTS = "g (float[4] x) => (float y) { y = ReduceProd <keepdims = 0> (x) }"
#: Single nodes as text, with operands for which onnxruntime is no reference.
DEVIATIONS: list[tuple[str, str, Any]] = [
    (
        "ReduceLogSumExp",
        "g (float[4] x) => (float y) { y = ReduceLogSumExp <keepdims = 0> (x) }",
        INFINITE_AND_NAN,
    ),
    (
        "InstanceNormalization",
        """g (float[1,1,6] x) => (float[1,1,6] y) <float[1] s = {1}, float[1] b = {0}>
        { y = InstanceNormalization (x, s, b) }""",
        OVERFLOWING,
    ),
    (
        "InstanceNormalization",
        """g (float[1] x) => (float[1,1,3] y)
        <float[1,1,3] v = {-0.01, 0, 0.01}, float[1] b = {0}>
        { y = InstanceNormalization (v, x, b) }""",
        np.full(1, -np.finfo(np.float32).max),
    ),
    (
        "MeanVarianceNormalization",
        """g (float[2,3,3] x) => (float[2,3,3] y)
        { y = MeanVarianceNormalization <axes = [0, 2]> (x) }""",
        EQUAL,
    ),
    (
        "GlobalMaxPool",
        "g (float[1,2,1] x) => (float[1,2,1] y) { y = GlobalMaxPool (x) }",
        np.array([[[-np.inf], [3]]], np.float32),
    ),
    (
        "MaxRoiPool",
        """g (float[1,2,1,1] x) => (float[1,2,1,1] y) <float[1,5] r = {0,0,0,0,0}>
        { y = MaxRoiPool <pooled_shape = [1,1]> (x, r) }""",
        np.array([[[[-np.inf]], [[3]]]], np.float32),
    ),
    (
        "RNN",
        """g (float[2,1,2] x) => (float[2,1,1,2] y)
        <float[1,2,2] w = {1, 2, 3, 4}>
        { y = RNN <hidden_size = 2, activations = ["Relu"]> (x, w, w) }""",
        np.array([[[np.inf, np.nan]], [[1, 2]]], np.float32),
    ),
    (
        "MultiHeadAttention",
        """g (float[1,1,2,2] x) => (float[1,2,1] y)
        <float[1,2,1] q = {1, 2}, float[1,1,2,1] k = {1, 2}>
        { y = com.microsoft.MultiHeadAttention <num_heads = 1, unidirectional = 1>
            (q, k, k, , , x) }""",
        np.array([[[[1, np.nan], [1, 2]]]], np.float32),
    ),
    ("ReduceProd", PRODUCTS, PRODUCT),
    (
        "QLinearConcat",
        """g (float x) => (uint8[1,3] y) <uint8[1,3] a = {3,4,5}, uint8 z = {4}>
        { y = com.microsoft.QLinearConcat <axis = 1> (x, z, a, x, z) }""",
        np.array(np.inf, np.float32),
    ),
    (
        "QLinearAveragePool",
        """g (float x) => (uint8[1,1,2] y) <uint8[1,1,3] a = {1,9,5}, uint8 z = {4},
        float s = {1}>
        { y = com.microsoft.QLinearAveragePool <kernel_shape = [2]> (a, x, z, s, z) }
        """,
        np.array(np.inf, np.float32),
    ),
]


@pytest.mark.parametrize(
    "operator, text, x", DEVIATIONS, ids=[d[0] for d in DEVIATIONS]
)
def test_a_rule_is_about_a_node_that_differs_alone(
    operator: str, text: str, x: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_of(header(18) + text, [{"x": floats(*x.shape)}] * 2 + [{"x": x}])
    assert are_differences_explained(case, case.feeds[2])
    assert not are_differences_explained(case, case.feeds[0])
    assert report_of(case, False).kind == "right"
    others = tuple(r for r in not_finite.NOT_FINITE if r.operator != operator)
    monkeypatch.setattr(not_finite, "NOT_FINITE", others)
    assert not are_differences_explained(case, case.feeds[2])


#: The same nodes with operands that are not finite and that no rule is about.
UNRULED = {
    "MaxRoiPool": np.array([[[[np.inf]], [[3]]]], np.float32),
    "GlobalMaxPool": np.array([[[np.inf], [3]]], np.float32),
    "ReduceProd": np.array([1e-30, 1, np.inf, 2], np.float32),
}


@pytest.mark.parametrize("operator", UNRULED)
def test_a_defect_beside_what_a_rule_is_about_is_not_explained(
    operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, x = next(d[1] for d in DEVIATIONS if d[0] == operator), UNRULED[operator]
    case = case_of(header(18) + text, [{"x": floats(*x.shape)}] * 2 + [{"x": x}])
    assert report_of(case, False).kind == "right"
    monkeypatch.setattr(
        nodes, "results", lambda *args: [np.nan * y for y in results(*args)]
    )
    assert not are_differences_explained(case, case.feeds[2])


@pytest.mark.parametrize("activation, explained", [("Relu", True), ("Tanh", False)])
def test_nan_in_the_sequence_of_a_recurrent_node(
    activation: str, explained: bool
) -> None:
    node = onnx.helper.make_node("RNN", ["x", "w", "r"], ["y"], hidden_size=2)
    node.attribute.append(onnx.helper.make_attribute("activations", [activation]))
    one, x = np.ones((1, 2, 2), np.float32), np.full((2, 1, 2), np.nan, np.float32)
    reason = not_finite.not_finite_explanation(node, [x, one, one])
    assert (reason is not None) == explained
    assert not_finite.not_finite_explanation(node, [one, one, one]) is None


@pytest.mark.parametrize(
    "x, explained",
    [
        ([1e-30, 1e-30, np.inf], True),
        ([1e30, 1e30, 0], True),
        ([1e30, 1e30, 1e-30, 1e-30], True),
        ([0, np.inf], False),
        ([np.nan, np.inf], False),
        ([1e-30, 1e30, np.inf], False),
    ],
)
def test_products_that_depend_on_their_order(x: list[float], explained: bool) -> None:
    node = onnx.helper.make_node("ReduceProd", ["x"], ["y"])
    operand = np.array(x, np.float32)
    reason = not_finite.not_finite_explanation(node, [operand])
    assert (reason is not None) == explained
    # Along an axis of one element each, there is no order.
    node.attribute.append(onnx.helper.make_attribute("axes", [0]))
    assert not_finite.not_finite_explanation(node, [operand[None]]) is None


QUOTIENT = """g (float[3,4] x) => (float[3,4] y) <int64[1] axis = {1}>
    { e = Exp (x)
      s = ReduceSum (e, axis)
      y = Div (e, s) }"""


def test_a_pass_that_makes_results_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    large = np.where(np.arange(12) == 5, np.inf, floats(12)).astype(np.float32)
    feeds = [{"x": floats(3, 4)}] * 2 + [{"x": large.reshape(3, 4)}]
    case = case_of(header(18) + QUOTIENT, feeds)
    assert report_of(case, False).kind == "right"
    monkeypatch.setattr(checks, "FINITE", ())
    assert report_of(case, False).kind == "different"


@pytest.mark.parametrize("text", [QUOTIENT, BOTH])
def test_other_differences_are_not_of_a_pass(text: str) -> None:
    special = np.nan_to_num(SPECIAL)
    case = case_of(header(18) + text, [{"x": x} for x in (special, special, SPECIAL)])
    run = expected_runs(case)[2]
    wrong = replace(run, expected=[y + 1 for y in run.expected])
    with imported(case.model, IMPORTS["default"]) as module:
        got = of_finite_passes(wrong, case, module, IMPORTS["default"])
    assert got is wrong


@pytest.mark.parametrize(
    "last, window, expected",
    [(3e38, 2, True), (3e38, 1, True), (1e38, 1, False), (1e38, 4, True)],
)
def test_transforms_that_overflow(last: float, window: float, expected: bool) -> None:
    node = onnx.helper.make_node("STFT", ["x", "n", "w"], ["y"])
    x = np.array([[[1e38], [last]]], np.float32)
    operands = [x, np.array(1), np.array([1, -window], np.float32)]
    reason = not_finite.not_finite_explanation(node, operands)
    assert (reason is not None) == expected


@pytest.mark.parametrize(
    "x, weight, expected",
    [
        ([3e38, -3e38], [0.6, 0.6], True),
        ([3e38, -3e38], [0.4, 0.4], False),
        ([3e38, np.inf], [0.6, 0.6], True),
        ([1, np.inf], [2, 3], False),
        ([3e38, 1], [np.inf, 1], False),
    ],
)
def test_products_whose_sum_may_overflow(
    x: list[float], weight: list[float], expected: bool
) -> None:
    node = onnx.helper.make_node("Conv", ["x", "w"], ["y"])
    operands = [np.array([[values]], np.float32) for values in (x, weight)]
    reason = not_finite.not_finite_explanation(node, operands)
    assert (reason is not None) == expected


def test_finite_numbers_that_do_not_overflow_are_not_explained() -> None:
    node = onnx.helper.make_node("InstanceNormalization", ["x", "s", "b"], ["y"])
    one = np.ones(1, np.float32)
    small = np.full((1, 1, 6), 1e18, np.float32)
    assert not_finite.not_finite_explanation(node, [small, one, one]) is None
    node = onnx.helper.make_node("ReduceLogSumExp", ["x"], ["y"])
    for value in (np.nan, np.inf):
        x = np.array([value, 1], np.float32)
        assert not_finite.not_finite_explanation(node, [x]) is None


#: Graphs in which Hardmax differs by NaN, among what is not shown or not run alone.
SURROUNDED = {
    "a type of few bits": """g (float[3,4] x) => (float[3,4] y, float[3,4] z)
        <float s = {0.5}>
        { y = Hardmax (x)
          p = Constant <value: tensor = float8e4m3fn p {0}> ()
          q = QuantizeLinear (x, s, p)
          z = DequantizeLinear (q, s, p) }""",
    "a function with a default": """g (float[3,4] x) => (float[3,4] y)
        { y = local.F (x) }
        <domain: "local", opset_import: ["" : 20]>
        F <alpha: float = 0.5> (x) => (y)
        { c = Constant <value_float: float = @alpha> ()
          h = Hardmax (x)
          y = Mul (h, c) }""",
    "a body in a body": """g (bool b, float[3,4] x) => (float[3,4] y)
        { y = If (b) <
            then_branch = t () => (float[3,4] u) {
                u = If (b) <then_branch = i () => (float[3,4] v) { v = Hardmax (x) },
                            else_branch = j () => (float[3,4] w) { w = Neg (x) }> },
            else_branch = e () => (float[3,4] r) { r = Neg (x) }> }""",
}


@pytest.mark.parametrize("name", SURROUNDED)
def test_a_node_is_explained_beside_values_that_are_not_shown(name: str) -> None:
    text = header(20).replace("]>", ', "local" : 1]>')
    runs = [{"b": np.array(True), "x": x} for x in (floats(3, 4), SPECIAL[::-1])]
    if "(bool b" not in SURROUNDED[name]:
        runs = [{"x": run["x"]} for run in runs]
    case = case_of(text + SURROUNDED[name], [runs[0], *runs])
    assert are_differences_explained(case, runs[1])
    assert not are_differences_explained(case, runs[0])


def test_a_node_that_needs_its_constants_runs_with_them() -> None:
    text = """<ir_version: 10, opset_import: ["" : 9]>
        g (float[1,1,1,3] x) => (float[1,1,3,3] y)
        { c = Constant <value: tensor = float[4] {1, 1, 3, 1}> ()
          y = Upsample <mode = "linear"> (x, c) }"""
    special = np.array([[[[-0.3, -0.7, np.inf]]]], np.float32)
    case = case_of(text, [{"x": floats(1, 1, 1, 3)}] * 2 + [{"x": special}])
    assert are_differences_explained(case, case.feeds[2])
    assert not are_differences_explained(case, case.feeds[0])


def test_a_node_is_explained_beside_an_empty_optional_value() -> None:
    model = onnx.parser.parse_model(header(20) + """
        g (float[3,4] x) => (float[3,4] y, bool z)
        { y = Hardmax (x)
          o = Optional ()
          z = OptionalHasElement (o) }""")
    tensor = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)
    kind = onnx.helper.make_attribute("type", tensor)
    model.graph.node[1].attribute.append(kind)
    feeds = [{"x": floats(3, 4)}] * 2 + [{"x": SPECIAL[::-1]}]
    case = measured(FuzzCase(0, model, feeds, {}))
    assert case is not None, "onnxruntime does not run it"
    assert are_differences_explained(case, feeds[2])
    assert not are_differences_explained(case, feeds[0])


@pytest.mark.parametrize("window, has_zeros", [("Blackman", True), ("Hamming", False)])
def test_infinity_times_a_rounding_of_zero(window: str, has_zeros: bool) -> None:
    """The ends of a window may be 0, or their rounding: NaN, or an infinity."""
    text = f"""g (float[5] x) => (float[5] y) <int64 n = {{5}}>
        {{ w = {window}Window <periodic = 0> (n)  y = Mul (w, x) }}"""
    ones = {"x": np.ones(5, np.float32)}
    feeds = {"x": np.array([np.inf, 1, 1, 1, 1], np.float32)}
    case = case_of(header(18) + text, [ones, ones, feeds])
    assert are_differences_explained(case, feeds) == has_zeros
