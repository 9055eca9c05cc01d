"""Operators in loop bodies: the generated module gives equal results."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.looped import check, normal, number

OUTER = """
agraph (float[batch, 4, 3] x, float[batch, 3] y, int64 trips)
  => (float[batch, 3] last, float[k, batch, 1, 3] rows)
<bool going = {1}, int64 one = {1}, int64[1] axis = {1}, float[3] bias = {1, 2, -3}>
{
  shape = Shape (x)
  zero = Constant <value_int = 0> ()
  batch = Gather (shape, zero)
  factor = Cast <to = 1> (batch)
  expensive = Exp (y)
  last, rows = Loop (trips, going, y) <body = body
    (int64 i, bool cond, float[batch, 3] h)
    => (bool cond_out, float[batch, 3] h2, float[batch, 1, 3] row) {
      cond_out = Identity (cond)
      step = Gather <axis = 1> (x, i)
      mean = Div (step, factor)
      biased = Add (mean, bias)
      sum = Add (biased, h)
      h2 = Mul (sum, expensive)
      row = Unsqueeze (h2, axis)
    }>
}
"""


@pytest.mark.parametrize("trips", [0, 1, 4])
def test_values_from_outside(tmp_path: Path, trips: int) -> None:
    feeds = [
        {"x": normal(n, 4, 3), "y": normal(n, 3), "trips": number(trips)}
        for n in (2, 5)
    ]
    text = check(tmp_path, OUTER, *feeds)
    before, _, inside = text.partition("for i in range(trips):")
    assert "ops.exp(y)" in before and "ops.exp" not in inside


LAYERS = """
agraph (float[n, 3, 6, 5] x, float[n, 4] h, int64 trips)
  => (float[n, 3, 6, 5] p, float[n, 4] q, float[k, n, 4] rows)
<bool going = {1}>
{
  p, q, rows = Loop (trips, going, x, h) <body = body
    (int64 i, bool cond, float[n, 3, 6, 5] a, float[n, 4] b)
    => (bool cond_out, float[n, 3, 6, 5] a2, float[n, 4] b2, float[n, 4] row) {
      cond_out = Identity (cond)
      conv = Conv <pads = [1, 1, 1, 1], kernel_shape = [3, 3]> (a, kernel, bias)
      a2 = Relu (conv)
      product = MatMul (b, matrix)
      row = Add (product, offset)
      b2 = Tanh (row)
    }>
}
"""


def test_layers_in_a_body(tmp_path: Path) -> None:
    weights = {
        "kernel": normal(3, 3, 3, 3) / 4,
        "bias": normal(3),
        "matrix": normal(4, 4),
        "offset": normal(4, seed=3),
    }
    feeds = [
        {"x": normal(n, 3, 6, 5), "h": normal(n, 4), "trips": number(3)} for n in (1, 2)
    ]
    text = check(tmp_path, LAYERS, *feeds, weights=weights)
    assert "nn.Conv2d(3, 3" in text and "nn.Linear(4, 4)" in text


NESTED = """
agraph (float[n, 3] x, int64 outer, int64 inner)
  => (float[n, 3] last, float[k, n, 3] rows, float[k2, m, n, 3] grid)
<bool going = {1}>
{
  last, rows, grid = Loop (outer, going, x) <body = body
    (int64 i, bool cond, float[n, 3] a)
    => (bool cond_out, float[n, 3] a2, float[n, 3] row, float[m, n, 3] inner_rows) {
      cond_out = Identity (cond)
      number = Cast <to = 1> (i)
      a2, inner_rows = Loop (inner, cond, a) <body = body2
        (int64 i2, bool cond2, float[n, 3] b)
        => (bool cond3, float[n, 3] b2, float[n, 3] row2) {
          number2 = Cast <to = 1> (i2)
          ten = Constant <value_float = 10.0> ()
          tens = Mul (number, ten)
          place = Add (tens, number2)
          scaled = Div (x, ten)
          row2 = Add (b, place)
          b2 = Sub (row2, scaled)
          limit = Constant <value_int = 1> ()
          cond3 = Less (i2, limit)
        }>
      row = Mul (a2, a)
    }>
}
"""


@pytest.mark.parametrize(("outer", "inner"), [(2, 3), (3, 1), (1, 0), (0, 4)])
def test_loop_in_a_loop(tmp_path: Path, outer: int, inner: int) -> None:
    feeds = [
        {"x": normal(n, 3), "outer": number(outer), "inner": number(inner)}
        for n in (1, 4)
    ]
    check(tmp_path, NESTED, *feeds)


BRANCH = """
agraph (float[n, 3] x, float[n, 3] y, int64 trips)
  => (float[n, 3] last, float[k, n, 3] rows)
<bool going = {1}>
{
  last, rows = Loop (trips, going, x) <body = body
    (int64 i, bool cond, float[n, 3] a)
    => (bool cond_out, float[n, 3] a2, float[n, 3] row) {
      zero = Constant <value_float = 0.0> ()
      total = ReduceSum <keepdims = 0> (a)
      high = Greater (total, zero)
      a2, row = If (high) <
        then_branch = g () => (float[n, 3] t, float[n, 3] t2) {
          t = Sub (a, y)
          t2 = Exp (t)
        },
        else_branch = h () => (float[n, 3] e, float[n, 3] e2) {
          s = Add (a, y)
          e = Add (s, x)
          e2 = Neg (a)
        }>
      cond_out = Identity (cond)
    }>
}
"""


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_if_in_a_loop(tmp_path: Path, trips: int) -> None:
    feeds = [
        {"x": normal(n, 3), "y": normal(n, 3, seed=5), "trips": number(trips)}
        for n in (1, 4)
    ]
    check(tmp_path, BRANCH, *feeds)


INSIDE = """
agraph (float[n, 3] x, bool flag, int64 trips) => (float[n, 3] y, float[k, n, 3] rows)
<bool going = {1}>
{
  double = Add (x, x)
  y, rows = If (flag) <
    then_branch = g () => (float[n, 3] t, float[k, n, 3] t_rows) {
      t, t_rows = Loop (trips, going, x) <body = body
        (int64 i, bool cond, float[n, 3] a)
        => (bool cond_out, float[n, 3] a2, float[n, 3] row) {
          cond_out = Identity (cond)
          a2 = Sub (double, a)
          row = Tanh (a2)
        }>
    },
    else_branch = h () => (float[n, 3] e, float[k, n, 3] e_rows) {
      e = Identity (double)
      axis = Constant <value_ints = [0]> ()
      e_rows = Unsqueeze (x, axis)
    }>
}
"""


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_loop_in_an_if(tmp_path: Path, trips: int) -> None:
    feeds = [
        {"x": normal(n, 3), "flag": np.array(flag), "trips": number(trips)}
        for n in (1, 4)
        for flag in (True, False)
    ]
    check(tmp_path, INSIDE, *feeds)


FUNCTION = """
agraph (float[n, 3] x, float[n, 3] y, int64 trips)
  => (float[n, 3] p, float[k, n, 3] r, float[n, 3] q, float[k2, n, 3] s)
{
  p, r = local.walk (x, y, trips)
  q, s = local.walk (y, p, trips)
}

<opset_import: ["" : 18], domain: "local">
walk (a, step, rounds) => (b, rows)
{
  going = Constant <value = bool {1}> ()
  half = Constant <value_float = 0.5> ()
  small = Mul (step, half)
  b, rows = Loop (rounds, going, a) <body = body
    (int64 i, bool cond, float[n, 3] h) => (bool cond_out, float[n, 3] h2,
     float[n, 3] row) {
      cond_out = Identity (cond)
      row = Mul (h, small)
      h2 = Add (row, small)
    }>
}
"""


@pytest.mark.parametrize("trips", [0, 3])
def test_loop_in_a_local_function(tmp_path: Path, trips: int) -> None:
    feeds = [
        {"x": normal(n, 3), "y": normal(n, 3, seed=5), "trips": number(trips)}
        for n in (1, 4)
    ]
    check(tmp_path, FUNCTION, *feeds)


UNUSED = """
agraph (float[n, 3] x, int64 trips) => (float[k, n, 3] b)
<bool going = {1}>
{
  p, q, a, b, c = Loop (trips, going, x, x) <body = body
    (int64 i, bool cond, float[n, 3] h, float[n, 3] g)
    => (bool cond_out, float[n, 3] h2, float[n, 3] g2, float[n, 3] r1, float[n, 3] r2,
     float r3) {
      cond_out = Identity (cond)
      h2 = Tanh (h)
      g2 = Exp (g)
      r1 = Neg (h)
      r2 = Sub (h, x)
      r3 = ReduceSum <keepdims = 0> (g2)
    }>
}
"""


@pytest.mark.parametrize("trips", [0, 3])
def test_results_that_nobody_reads(tmp_path: Path, trips: int) -> None:
    feeds = [{"x": normal(n, 3), "trips": number(trips)} for n in (1, 4)]
    text = check(tmp_path, UNUSED, *feeds)
    assert "ops.exp" not in text and "sum" not in text


NAMES = """
agraph (float[i, 3] list, float[i, 3] rows, int64 range, float[i, 3] Tensor)
  => (float[i, 3] ops, float[k, i, 3] append, float[k, i, 3] zip)
<bool true = {1}>
{
  ops, append, zip = Loop (range, true, list) <body = body
    (int64 print, bool while, float[i, 3] rows_2)
    => (bool going, float[i, 3] for, float[i, 3] break, float[i, 3] self) {
      going = Identity (while)
      float = Cast <to = 1> (print)
      len = Add (rows_2, float)
      break = Mul (len, rows)
      for = Sub (break, Tensor)
      self = Identity (len)
    }>
}
"""


@pytest.mark.parametrize("trips", [0, 3])
def test_names_that_mean_something_in_python(tmp_path: Path, trips: int) -> None:
    feeds = [
        {k: normal(n, 3, seed=s) for s, k in enumerate(("list", "rows", "Tensor"))}
        | {"range": number(trips)}
        for n in (1, 4)
    ]
    check(tmp_path, NAMES, *feeds)


COPIED = """
agraph (float[batch, 3] x, int64 trips)
  => (float[batch, 3] y, float[k, 3] rows, float[3] direct)
<float[3] weight = {0.5, -1.5, 2}, bool going = {1}>
{
  direct = Tanh (weight)
  y, rows = Loop (trips, going, x) <body = body
    (int64 i, bool cond, float[batch, 3] h)
    => (bool cond_out, float[batch, 3] h2, float[3] row) {
      cond_out = Identity (cond)
      h2 = Add (h, x)
      copy = Identity (direct)
      row = Identity (copy)
    }>
}
"""


def test_a_copy_of_a_weight_is_no_literal(tmp_path: Path) -> None:
    """A parameter that a body returns stays a parameter and has a gradient."""
    text = check(tmp_path, COPIED, {"x": normal(2, 3), "trips": number(3)})
    assert "nn.parameter(3)" in text
    assert "rows.append(self." in text and "ops.array" not in text
