"""Graphs whose gradients and dtypes are right; a planted defect in them is seen."""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burn import ops
from burn.primitive import Primitive
from tests.conformance.run import built
from tests.fuzz.errors import precision
from tests.fuzz.errors.precision import check_dtype
from tests.fuzz.generator import FuzzCase
from tests.fuzz.gradients import training
from tests.fuzz.gradients.slopes import check_pass_slopes
from tests.fuzz.gradients.training import check_training
from tests.fuzz.passes import different_gradients, gradients
from tests.fuzz.subject import called
from tests.fuzz.test_found import case_of, floats, header

#: Graphs, with a primitive in each without whose gradient a check has findings.
SLOPES: dict[str, tuple[int, str, dict[str, Any], Primitive[..., Any]]] = {
    "weights in float16 beside inputs in float16": (
        24,
        """g (float16[3,4,2] x) => (float16[a,b,c] y)
        <float16[3,1,2] w = {15380, 15021, 48156, 48767, 14368, 15155},
         int64[3] at = {0,0,1}>
        { u = Tanh (w)  y = TensorScatter (x, u, at) }""",
        {"x": floats(3, 4, 2).astype(np.float16)},
        ops.tanh,
    ),
    "stored NaN": (
        18,
        """g (float[4] x) => (float[a] y, float[b,c] z)
        <float[3] w = {nan, -1, 0}, float[2,2] v = {0.1, -0.4, 0.7, 0.2},
         int64[1] first = {0}, int64[1] last = {4}>
        { t = Neg (w)  u = Concat <axis: int = 0> (x, t)  y = Slice (u, first, last)
          z = Tanh (v) }""",
        {"x": floats(4)},
        ops.tanh,
    ),
    "a steep function of weights, which a pass folds": (
        18,
        """g (float[n,2] x) => (float[a,b] y) <float[2] w = {1.563, 0.3}>
        { t = Tan (w)  u = Mul (t, t)  y = Mul (x, u) }""",
        {"x": floats(3, 2)},
        ops.tan,
    ),
    "a layer without gradients beside one that has them": (
        15,
        """g (float[1,1,2] x) => (float[a,b,c] y, float[d,e] z)
        <uint8[1,2,4] w = {84,95,84,91,145,120,84,144}, float[1,4] ws =
         {0.015,0.004,0.012,0.019}, uint8[1,1,4] r = {191,77,134,181}, float[1,4] rs =
         {0.019,0.009,0.017,0.004}, uint8[1,4] at = {118,118,118,118},
         float[2,2] v = {0.1, -0.4, 0.7, 0.2}>
        { all, y = com.microsoft.DynamicQuantizeLSTM <hidden_size: int = 1>
          (x, w, r, , , , , , ws, at, rs, at)
          z = Tanh (v) }""",
        {"x": floats(1, 1, 2)},
        ops.tanh,
    ),
    "probabilities that fit all pairs of classes": (
        9,
        """g (float[9] x) => (float[a,b] y, float[c,d] z)
        <float[3] w = {-0.5, 0.6, -0.1}, int64[2] to = {4,3},
         float[2,2] v = {0.1, -0.4, 0.7, 0.2}>
        { all = Concat <axis: int = 0> (x, w)
          rows = Reshape (all, to)
          label, y = ai.onnx.ml.SVMClassifier <classlabels_ints: ints = [0, 1],
            coefficients: floats = [1.03, 0.91, 0.43], kernel_type: string = "LINEAR",
            kernel_params: floats = [0.25, 0.5, 2.0], prob_a: floats = [-1.09],
            prob_b: floats = [1.1], rho: floats = [-0.97], support_vectors: floats =
            [-0.7, -0.3, -0.4, -1.8, -0.5, -0.6, -0.3, 0.3, 0.8],
            vectors_per_class: ints = [2, 1]> (rows)
          z = Tanh (v) }""",
        {"x": floats(9)},
        ops.tanh,
    ),
}


@pytest.mark.parametrize("name", SLOPES)
def test_slopes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opset, text, feeds, primitive = SLOPES[name]
    case = case_of(header(opset) + text, feeds, profile="networks")
    assert findings(case) == []
    monkeypatch.setattr(primitive, "rule", None)
    assert findings(case)


def findings(case: FuzzCase) -> list[tuple[str, str]]:
    return [*check_pass_slopes(case), *check_training(case)]


#: Graphs with a number that is folded from weights, beside a parameter.
FOLDED: dict[str, tuple[int, str]] = {
    "a determinant": (
        11,
        """g (float[n,3] x, float[m] v) => (float[a,b] y, float[c] z)
        <float[1,3,3] w = {1.1,-1,0.8,0.4,1.1,0.7,1.2,0.5,1.1},
         float[4] kept = {1.1,-0.5,0.11,0.02}>
        { d = Det (w)  y = Add (x, d)  z = Concat <axis: int = 0> (v, kept) }""",
    ),
    "a sum": (
        16,
        """g (float[n,3] x, float[m] v) => (float[a,b] y, float[c] z)
        <float[2,3] w = {1.34,-1.36,0.68,0.5,-0.23,0.68}, float one = {1},
         float[4] kept = {1.1,-0.5,0.11,0.02}>
        { s = Add (w, one)  t = ReduceSum (s)  y = Mul (x, t)
          z = Concat <axis: int = 0> (v, kept) }""",
    ),
    "a sum that is a result as well": (
        16,
        """g (float[n,3] x, float[m] v) => (float[a,b] y, float[c] z, float[d,e] t)
        <float[3] w = {0.34,-0.36,0.28}, float[4] kept = {1.1,-0.5,0.11,0.02}>
        { s = Neg (w)  t = ReduceSum (s)  y = Mul (x, t)
          z = Concat <axis: int = 0> (v, kept) }""",
    ),
    "a sum, and a parameter that holds the same number": (
        16,
        """g (float[n,3] x, float[m] v) => (float[a,b] y, float[c] z, float[d] r)
        <float[3] w = {0.34,-0.36,0.28}, float[4] kept = {1.1,-0.5,0.11,0.02},
         float[2] other = {0.5,0.7}, int64[1] f = {0}, int64[1] l = {1}>
        { s = Neg (w)  t = ReduceSum <keepdims = 0> (s)  y = Mul (x, t)
          z = Concat <axis: int = 0> (v, kept)
          u = Reshape (t, l)  q = Concat <axis: int = 0> (u, other)
          r = Slice (q, f, l) }""",
    ),
}


@pytest.mark.parametrize("name", FOLDED)
def test_what_a_number_is_folded_from(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opset, text = FOLDED[name]
    case = case_of(header(opset) + text, {"x": floats(4, 3), "v": floats(5)})
    assert list(check_training(case)) == []
    right = training._gradients

    def wrong(*args: Any) -> Any:
        grads = right(*args)
        return [grad * np.float32(1.01) for grad in grads or ()]

    monkeypatch.setattr(training, "_gradients", wrong)
    assert "gradients by parameters" in [key for key, _ in check_training(case)]


def test_halves_beside_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """g (float[n,3] x) => (float[a,b] y)
        <float[3] w = {0.0001,-0.0002,0.00015}>
        { s = Cast <to = 10> (x)  t = Tanh (s)  u = Cast <to = 1> (t)
          y = Mul (u, w) }"""
    choices = np.linspace(0.55, 0.56, 1000).astype(np.float16).astype(np.float32)
    halves = np.tanh(choices).astype(np.float16)
    errors = abs(halves / np.tanh(choices.astype(np.float64)) - 1)
    assert errors.max() > 2 * training.ERROR
    x = np.full((1, 3), choices[errors.argmax()])
    case = case_of(header(17) + text, {"x": x})
    assert list(check_training(case)) == []
    monkeypatch.setattr(training, "ERROR_OF_HALVES", training.ERROR)
    assert [key for key, _ in check_training(case)] == ["gradients by parameters"]


def test_rounding_of_gradients_that_cancel(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left of terms that cancel differs by more than one draw may show."""
    text = """g (float[n,2] x) => (float[a,b] y)
        <float[2] w = {0.3, -0.7}, float[2,2] u = {0.1, -0.4, 0.7, 0.2}>
        { s = MatMul (x, u)  t = Add (s, w)  m = ReduceMean <axes: ints = [0]> (t)
          r = Sub (t, m)  y = Tanh (r) }"""
    case = case_of(header(17) + text, {"x": floats(5, 2)})
    draws = training._noise

    def small_at_first(*args: Any) -> Any:
        noise = draws(*args)
        return noise if len(args) > 4 else [0.0 for _ in noise or ()]

    monkeypatch.setattr(training, "_noise", small_at_first)
    assert list(training.check_training(case)) == []


#: Graphs with rounding inside of a node that its results do not show, and a profile
#: in which they are compared in float64, or in bfloat16.
INSIDE: dict[str, tuple[int, str, dict[str, Any], str]] = {
    "scores below -10000 in a body": (
        12,
        """g (float[n,3] x, int64 count) => (float[a,b] y) <bool on = {1}>
        { y = Loop (count, on, x) <body = b (int64 i, bool c, float[k,3] s)
            => (bool d, float[k,3] t) <float low = {-10000.0}> {
            d = Identity (c)  m = Add (s, low)  t = Softmax <axis: int = 1> (m) }> }""",
        {"x": floats(4, 3), "count": np.array(1, np.int64)},
        "mixed",
    ),
    "a product that underflows": (
        12,
        """g (float[2,2] x) => (float[a,b] y)
        { p = ReduceProd <axes: ints = [1]> (x)  y = Sqrt (p) }""",
        {"x": np.array([[-1e-30, 1e-30], [2, 3]], np.float32)},
        "mixed",
    ),
    "a condition near its threshold": (
        12,
        """g (float[2] x) => (float[a] y) <float limit = {2.0}>
        { s = ReduceSum <keepdims: int = 0> (x)  c = Greater (s, limit)
          y = If (c) <then_branch = t () => (float[2] u) { u = Identity (x) },
            else_branch = e () => (float[2] v) { v = Neg (x) }> }""",
        {"x": np.array([1.0039, 1.0038], np.float32)},
        "networks",
    ),
}


CANCELLING = """g (float[1,1,8] x) => (float[1,1,8] y)
    <float[1] w = {1}, float[1] b = {0}, float c = {0.3}>
    { z = InstanceNormalization (x, w, b)  y = Mul (z, c) }"""


@pytest.mark.parametrize("error, is_rounding", [(8e-6, True), (2e-3, False)])
def test_rounding_of_the_backward_pass(error: float, is_rounding: bool) -> None:
    """The sum of what is normalized is 0, and so is its gradient, for all inputs."""
    case = case_of(header(18) + CANCELLING, {"x": 1e-3 * floats(1, 1, 8)})
    with tempfile.TemporaryDirectory() as folder:
        graph = built(case.model, Path(folder))
    inputs = list(case.feeds[0].values())
    slopes = gradients(graph, inputs)
    assert slopes is not None
    (exact,) = slopes
    text = different_gradients([exact + error], [exact], graph, inputs)
    assert (text is None) == is_rounding


def inside_case(name: str) -> FuzzCase:
    opset, text, feeds, profile = INSIDE[name]
    case = case_of(header(opset) + text, feeds, profile=profile)
    return replace(case, seed=1)  # which is compared in another dtype


@pytest.mark.parametrize("name", INSIDE)
def test_rounding_inside_of_nodes(name: str) -> None:
    assert list(check_dtype(inside_case(name))) == []


def test_another_function_is_beyond_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    case = inside_case("scores below -10000 in a body")

    def of_others(module: Any, feeds: Mapping[str, Any]) -> list[Any]:
        return called(module, {**feeds, "x": feeds["x"] * 1.1})

    monkeypatch.setattr(precision, "called", of_others)
    assert [name for name, _ in check_dtype(case)]


def test_errors_inside_are_what_the_graph_shows_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without them the same graph would be beyond its bounds."""
    case = inside_case("scores below -10000 in a body")
    monkeypatch.setattr(precision, "_inside", lambda *_: [])
    assert [name for name, _ in check_dtype(case)]
