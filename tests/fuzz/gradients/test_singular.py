"""Checks of gradients and precision at points where they say nothing, and beside them.

What is wrong elsewhere is found in the same graphs.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from burn import Tensor, dtypes, ops
from tests.fuzz.errors import precision
from tests.fuzz.errors.noisy import Noisy
from tests.fuzz.errors.precision import check_dtype
from tests.fuzz.generator import FuzzCase
from tests.fuzz.gradients import slopes
from tests.fuzz.gradients.weights import is_below_float64, narrowed
from tests.fuzz.subject import called
from tests.fuzz.test_found import case_of, floats, header

WEIGHTS = "<float[2,2] w = {0.1, 0.4, 0.7, 0.2}>"
#: Graphs with an operator at a point that says nothing, and the same beside it.
ROOT = "d = Sub (w, {})  r = Sqrt (d)  y = Mul (x, w)  z = Mul (x, r)"
REMAINDER = "t = Tanh (w)  y = Mod <fmod = 1> (t, x)  z = Mul (x, x)"


def graph(nodes: str, factor: float = 1) -> FuzzCase:
    """The case of nodes on weights ``w`` and inputs ``x``."""
    text = f"g (float[2,2] x) => (float[a,b] y, float[c,d] z) {WEIGHTS} {{ {nodes} }}"
    feeds = {"x": (np.abs(floats(2, 2)) * factor).astype(np.float32)}
    return case_of(header(17) + text, feeds)


def wrong(monkeypatch: pytest.MonkeyPatch, primitive: Any, factor: float) -> None:
    """Multiply the gradients by the first operand of a primitive by ``factor``."""
    right = primitive.rule

    def rule(*args: Any, **options: Any) -> Any:
        first, *others = _shares(right(*args, **options))
        return lambda: (first() if callable(first) else first) * factor, *others

    monkeypatch.setattr(primitive, "rule", rule)


def _shares(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def names_of(case: FuzzCase) -> list[str]:
    return [name for name, _ in slopes.check_pass_slopes(case)]


def test_a_slope_that_is_infinite() -> None:
    assert names_of(graph(ROOT.format("w"))) == []


def test_a_slope_that_is_not_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    case = graph(ROOT.format("x"), 0.01)
    assert names_of(case) == []
    wrong(monkeypatch, ops.sqrt, float("nan"))
    assert "slopes after no pass" in names_of(case)


def test_a_slope_that_is_finite_and_wrong_beside_an_infinite_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slopes, "_along", lambda *args: (1.5, 1.0))
    assert "slopes after no pass" in names_of(graph(ROOT.format("w")))


def test_a_remainder_of_less_than_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names_of(graph(REMAINDER, 1e-30)) == []
    case = graph(REMAINDER)
    assert names_of(case) == []
    wrong(monkeypatch, ops.fmod, 2.0)
    assert "slopes after no pass" in names_of(case)


@pytest.mark.parametrize("code, expected", [(1, True), (11, False), (None, False)])
def test_attention_rounds_weights_inside(code: int | None, expected: bool) -> None:
    option = "" if code is None else f", softmax_precision = {code}"
    text = f"""g (float[1,1,2,2] x) => (float[a,b,c,d] y)
        <float[1,1,2,2] w = {{0.1, 0.4, 0.7, 0.2}}>
        {{ y = Attention <softcap = 2.0{option}> (x, w, w) }}"""
    double = slopes.double_graph(case_of(header(24) + text, {"x": floats(1, 1, 2, 2)}))
    assert narrowed(double, "w", is_below_float64) == expected


def normalized(epsilon: float) -> FuzzCase:
    """Rows of one element, divided by their root of a variance of 0."""
    text = f"""g (float[3,1] x) => (float[a,b] y) <float e = {{{epsilon}}}>
        {{ m = ReduceMean <axes = [1]> (x)
          d = Sub (x, m)
          s = Mul (d, d)
          v = ReduceMean <axes = [1]> (s)
          u = Add (v, e)
          r = Sqrt (u)
          q = Div (d, r)
          y = Add (q, x) }}"""
    case = case_of(header(17) + text, {"x": floats(3, 1)}, profile="networks")
    return replace(case, seed=0)  # in float16


@pytest.mark.parametrize("epsilon", [1e-12, 1e-3])
def test_an_epsilon_that_vanishes_in_halves(
    epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = normalized(epsilon)
    assert list(check_dtype(case)) == []

    def planted(value: float) -> Any:
        def of(module: Any, feeds: Mapping[str, Any]) -> list[Any]:
            return [y * value for y in called(module, feeds)]

        return of

    monkeypatch.setattr(precision, "called", planted(1.5))
    assert bool(list(check_dtype(case))) == (epsilon > 1e-6)
    monkeypatch.setattr(precision, "called", planted(np.nan))
    assert bool(list(check_dtype(case))) == (epsilon > 1e-6)


def test_errors_inside_of_nodes_are_no_smaller_than_those_of_a_dtype() -> None:
    device = Noisy(2.0**-22, 0)
    for dtype in (dtypes.float16, dtypes.float32):
        exact = np.full(100, 1.1, dtype)
        moved = device.moved(Tensor(exact, device)).numpy()
        assert (moved != exact).mean() > 0.5


@pytest.mark.parametrize("weight, is_kink", [("0", True), ("-0.1", False)])
def test_kinks_that_are_smooth_together(
    weight: str, is_kink: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"""g (float[2,2] x) => (float[a,b] y, float[c,d] z)
    <float[2,2] w = {{{weight}, -0.4, -0.7, -0.2}}>
    {{ a = Abs (w)  y = Min (w, a)  z = Mul (x, w) }}"""
    case = case_of(header(17) + text, {"x": floats(2, 2)})
    assert names_of(case) == []
    wrong(monkeypatch, ops.minimum, 2)
    assert ("slopes after no pass" in names_of(case)) != is_kink


@pytest.mark.parametrize("weight, are_equal", [("0.4", True), ("0.1", False)])
def test_elements_that_are_one_in_the_result(
    weight: str, are_equal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"""g (float[2,2] x) => (float[a] y, float[c,d] z)
    <float[4] w = {{{weight}, 0.4, 0.7, 0.2}}, int64[2] s = {{2, 2}}>
    {{ y = Unique (w)  r = Reshape (w, s)  v = Mul (x, r)  z = Tanh (v) }}"""
    case = case_of(header(17) + text, {"x": floats(2, 2)})
    assert names_of(case) == []
    wrong(monkeypatch, ops.tanh, 2)
    assert bool(names_of(case)) != are_equal


@pytest.mark.parametrize("is_wrong", [False, True])
def test_quotients_of_numbers_below_the_normal_ones(
    is_wrong: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "g (float[1,8] x, float[1,1] s) => (float[a,b] y) { y = Div (x, s) }"
    feeds = {"x": 1e-6 * floats(1, 8), "s": np.full((1, 1), 1e-6, np.float32)}
    case = case_of(header(18) + text, feeds, profile="networks")
    if is_wrong:

        def of_others(module: Any, feeds: Mapping[str, Any]) -> list[Any]:
            return called(module, {**feeds, "x": feeds["x"] * 5})

        monkeypatch.setattr(precision, "called", of_others)
    assert bool(list(check_dtype(replace(case, seed=0)))) == is_wrong
