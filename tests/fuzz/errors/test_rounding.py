"""Bounds by rounding inside of a graph still find outputs that are wrong."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.fuzz.checks import (
    BF16,
    INT8,
    Run,
    difference_beyond_noise,
    expected_runs,
)
from tests.fuzz.errors import precision
from tests.fuzz.errors.precision import check_dtype
from tests.fuzz.subject import called
from tests.fuzz.test_found import case_of, floats, header

#: A tangent makes the rounding of an arc cosine near 0 large: its noise is measured.
STEEP = """
case (float[4, 3] x, float[3, 3] w) => (float[4, 3] y) {
  a = Tanh(x)
  b = Acos(a)
  y = Tan(b)
}
"""
NETWORK = """
case (float[4, 3] x, float[3, 3] w) => (float[4, 3] y) {
  a = MatMul(x, w)
  b = Tanh(a)
  c = MatMul(b, w)
  y = Softplus(c)
}
"""
#: The tangent is of halves, the product beside it of float32 alone.
HALVES = """
case (float[4, 3] x, float[3, 3] w) => (float[4, 3] y, float[4, 3] z) {
  a = Cast <to = 10>(x)
  b = Tanh(a)
  y = Cast <to = 1>(b)
  z = MatMul(x, w)
}
"""
#: The same in a body, and a list of tensors beside it.
HALVES_IN_A_BODY = """
case (float[4, 3] x, float[3, 3] w) => (float[4, 3] y, float[4, 3] z, seq(float[]) l) {
  c = Constant <value = bool {1}>()
  y = If (c) <
    then_branch = f () => (float[4, 3] t) {
      a = Cast <to = 10>(x)
      b = Tanh(a)
      t = Cast <to = 1>(b) },
    else_branch = g () => (float[4, 3] e) { e = Identity(x) }>
  z = MatMul(x, w)
  l = SequenceConstruct(x, x, w)
}
"""
#: Rounding, to halves or to what it is, decides on what the first result is.
DECIDED = """
case (float[4, 3] x, float[3, 3] w) => (bool[4, 3] y, float[4, 3] z) {{
  a = Cast <to = {kind}>(x)
  b = Tanh(a)
  c = Cast <to = 1>(b)
  d = Tanh(x)
  y = Less(c, d)
  z = MatMul(x, w)
}}
"""
#: The inverse of a function that is flat far from 0: errors leave its domain.
POLE = """
case (float[4, 3] x, float[3, 3] w) => (float[4, 3] y) {
  a = Tanh(x)
  y = Atanh(a)
}
"""
#: All keys of a row are hidden: scores have few digits beside -10000.
HIDDEN = """
case (float[2, 3, 2] x, float[2, 9] w, float[9] b, int32[2] m) => (float[2, 3, 3] y) {
  y = com.microsoft.Attention <num_heads = 1>(x, w, b, m)
}
"""
#: A mask of the lowest number, which a larger one would be infinite beside.
MASKED = """
case (float[4, 3] x, float[3, 3] w) => (float[4, 3] y)
<float lowest = {-3.4028235e38}, float[3] mask = {0, 0, 1}> {
  a = MatMul(x, w)
  b = Mul(mask, lowest)
  c = Add(a, b)
  y = Softmax(c)
}
"""

#: A cosine of large numbers among small ones, of which a tangent makes those.
ILL_CONDITIONED = """
case (float[4, 3] x, float[3, 3] w) => (float[4, 3] y) {
  a = Tan(x)
  y = Cos(a)
}
"""
#: Rounding tells of one element in which of two pieces it is, of halves or not.
PIECES = """
case (float[4, 3] x, float[3, 3] w) => (float[4, 3] y) {{
  a = Cast <to = {kind}>(x)
  b = Add(a, a)
  c = Cast <to = 1>(b)
  y = Floor(c)
}}
"""


def run_of(text: str) -> Run:
    feeds = {"x": floats(4, 3), "w": floats(3, 3)}
    return expected_runs(case_of(header(18) + text, feeds))[0]


def wrong(run: Run, share: float, output: int = 0) -> list[Any]:
    """The expected outputs with one element off by ``share`` of the largest."""
    outputs = list(run.expected)
    outputs[output] = np.array(outputs[output])
    outputs[output].reshape(-1)[5] += share * abs(outputs[output]).max()
    return outputs


@pytest.mark.parametrize(
    "text", [NETWORK, STEEP, HALVES, HALVES_IN_A_BODY, POLE, MASKED]
)
def test_what_is_expected_is_no_difference(text: str) -> None:
    run = run_of(text)
    for factor in (1, BF16, INT8):
        assert difference_beyond_noise(list(run.expected), run, factor) is None


@pytest.mark.parametrize(("factor", "share"), [(1, 1e-3), (BF16, 0.15), (INT8, 0.25)])
def test_a_wrong_element_of_a_network_is_a_difference(
    factor: float, share: float
) -> None:
    run = run_of(NETWORK)
    assert difference_beyond_noise(wrong(run, share), run, factor) is not None


def test_a_wrong_element_behind_a_steep_function_is_a_difference() -> None:
    """Measured noise is at most 1e-2 of an output's scale, which is less than this."""
    run = run_of(STEEP)
    assert difference_beyond_noise(wrong(run, 0.05), run) is not None


@pytest.mark.parametrize("text", [HALVES, HALVES_IN_A_BODY])
@pytest.mark.parametrize(("output", "share"), [(0, 0.05), (1, 1e-3)])
def test_a_wrong_element_in_a_graph_with_halves_is_a_difference(
    text: str, output: int, share: float
) -> None:
    run = run_of(text)
    assert difference_beyond_noise(wrong(run, share, output), run) is not None


@pytest.mark.parametrize("text", [HALVES, HALVES_IN_A_BODY])
def test_rounding_to_halves_and_none_is_no_difference(text: str) -> None:
    run = run_of(text)
    rounded = run.expected[0].astype(np.float16).astype(np.float32)
    exact = np.tanh(run.feeds["x"])
    assert np.abs(rounded - exact).max() > 1e-4
    assert difference_beyond_noise([rounded, *run.expected[1:]], run) is None
    assert difference_beyond_noise([exact, *run.expected[1:]], run) is None


def test_what_rounding_to_halves_decides_on_is_no_difference() -> None:
    halves, singles = run_of(DECIDED.format(kind=10)), run_of(DECIDED.format(kind=1))
    for run, is_compared in ((halves, False), (singles, True)):
        y, z = run.expected
        assert (difference_beyond_noise([~y, z], run) is not None) == is_compared
        assert difference_beyond_noise([y[:2], z], run) is not None or not is_compared
        assert difference_beyond_noise(wrong(run, 1e-3, 1), run) is not None


def test_elements_whose_errors_leave_a_domain_say_nothing_of_others() -> None:
    x = np.full((4, 3), 0.5, np.float32)
    x[0] = 7.0, 7.6, 8.5
    case = case_of(header(18) + POLE, {"x": x, "w": floats(3, 3)})
    run = replace(expected_runs(case)[0], noise=[0.0])
    tanh = np.nextafter(np.tanh(x), np.float32(0))
    moved = np.where(x == 7, np.arctanh(tanh), run.expected[0])
    assert abs(moved - run.expected[0]).max() > 0.01
    assert difference_beyond_noise([moved], run) is None
    assert difference_beyond_noise(wrong(run, 0.05), run) is not None


def test_errors_inside_of_attention_are_measured() -> None:
    feeds = {"x": floats(2, 3, 2), "w": floats(2, 9), "b": floats(9)}
    for ends, is_hidden in (([0, 0], True), ([3, 3], False)):
        feeds["m"] = np.array(ends, np.int32)
        run = expected_runs(case_of(header(14) + HIDDEN, feeds))[0]
        (noise,) = run.rounding(0)
        assert (noise > 1e-4) == is_hidden
        assert difference_beyond_noise(wrong(run, 0.05), run) is not None


def test_errors_beside_the_lowest_number_do_not_overflow() -> None:
    run = run_of(MASKED)
    (noise,) = run.rounding(2.0**-9)
    assert 1e-3 < noise < 0.1
    assert difference_beyond_noise(wrong(run, 0.3), run, BF16) is not None


def test_elements_that_rounding_makes_anything_of_do_not_hide_others() -> None:
    x = floats(4, 3).copy()
    x[1, 1] = np.float32(np.pi / 2) + np.float32(2.0**-17)
    case = case_of(header(18) + ILL_CONDITIONED, {"x": x, "w": floats(3, 3)})
    run = replace(expected_runs(case)[0], noise=[0.0])
    assert run.rounding(0) == [0.0]
    for place, share, is_found in (((1, 1), 0.5, False), ((0, 0), 1e-3, True)):
        outputs = [run.expected[0].copy()]
        outputs[0][place] += share
        assert (difference_beyond_noise(outputs, run) is not None) == is_found


@pytest.mark.parametrize("kind", [1, 10])
def test_what_rounding_decides_of_one_element_is_known_of_others(kind: int) -> None:
    x = floats(4, 3).copy()
    x[1, 1] = 0.5 - 2.0**-25 if kind == 1 else 0.5 - 2.0**-12
    text = header(18) + PIECES.format(kind=kind)
    run = expected_runs(case_of(text, {"x": x, "w": floats(3, 3)}))[0]
    run = replace(run, noise=[0.0])
    for place, is_found in (((1, 1), False), ((0, 0), True)):
        outputs = [run.expected[0].copy()]
        outputs[0][place] += 1
        assert (difference_beyond_noise(outputs, run) is not None) == is_found


def test_nan_is_no_result_of_what_rounding_leaves_in_its_domain() -> None:
    run = run_of(STEEP)
    outputs = [run.expected[0].copy()]
    outputs[0][0, 0] = np.nan
    assert difference_beyond_noise(outputs, run) is not None


@pytest.mark.parametrize("seed, share", [(0, 0.02), (1, 0.08), (2, 1e-4)])
def test_results_that_are_a_little_off_in_another_dtype(
    seed: int, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each element may be off by as much: together they may not."""
    feeds = {"x": floats(4, 3), "w": floats(3, 3)}
    case = case_of(header(18) + NETWORK, feeds, profile="networks")
    case = replace(case, seed=seed)
    assert list(check_dtype(case)) == []

    def off(module: Any, given: Any) -> list[Any]:
        return [y * np.asarray(1 + share, y.dtype) for y in called(module, given)]

    monkeypatch.setattr(precision, "called", off)
    assert len(list(check_dtype(case))) > 0
