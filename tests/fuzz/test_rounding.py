"""Bounds by rounding inside of a graph still find outputs that are wrong."""

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


def run_of(text: str) -> Run:
    feeds = {"x": floats(4, 3), "w": floats(3, 3)}
    return expected_runs(case_of(header(18) + text, feeds))[0]


def wrong(run: Run, share: float, output: int = 0) -> list[Any]:
    """The expected outputs with one element off by ``share`` of the largest."""
    outputs = [np.array(x) for x in run.expected]
    outputs[output].reshape(-1)[5] += share * abs(outputs[output]).max()
    return outputs


@pytest.mark.parametrize("text", [NETWORK, STEEP, HALVES])
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


@pytest.mark.parametrize(("output", "share"), [(0, 0.05), (1, 1e-3)])
def test_a_wrong_element_in_a_graph_with_halves_is_a_difference(
    output: int, share: float
) -> None:
    run = run_of(HALVES)
    assert difference_beyond_noise(wrong(run, share, output), run) is not None


def test_rounding_to_halves_and_none_is_no_difference() -> None:
    run = run_of(HALVES)
    rounded = run.expected[0].astype(np.float16).astype(np.float32)
    exact = np.tanh(run.feeds["x"])
    assert np.abs(rounded - exact).max() > 1e-4
    assert difference_beyond_noise([rounded, run.expected[1]], run) is None
    assert difference_beyond_noise([exact, run.expected[1]], run) is None
