"""Corner cases of loops: names, flags, scopes, types that change."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.looped import check, normal, number

FLAG = """
agraph (float[n, 3] x, bool going, int64 trips)
  => (float[n, 3] y, float[k, n, 3] r, float[n, 3] z, bool[k2] flags, float[n, 3] w)
{
  y, r = Loop (trips, going, x) <body = first
    (int64 i, bool cond, float[n, 3] h) => (bool last, float[n, 3] h2, float[n, 3] s) {
      last = Constant <value = bool {0}> ()
      h2 = Exp (h)
      s = Neg (h)
    }>
  z, flags = Loop (trips, going, y) <body = second
    (int64 i, bool cond, float[n, 3] h) => (bool cond_out, float[n, 3] h2, bool flag) {
      two = Constant <value_int = 2> ()
      cond_out = Less (i, two)
      factor = Cast <to = 1> (cond)
      h2 = Add (h, factor)
      flag = Not (cond_out)
    }>
  w = Where (going, z, x)
}
"""


@pytest.mark.parametrize("trips", [0, 1, 6, -2])
@pytest.mark.parametrize("going", [True, False])
def test_flags_that_are_read_again(tmp_path: Path, trips: int, going: bool) -> None:
    feeds = [
        {"x": normal(n, 3), "going": np.array(going), "trips": number(trips)}
        for n in (1, 4)
    ]
    check(tmp_path, FLAG, *feeds)


UNNAMED = """
agraph (float[n, 3] x, int64 trips)
  => (float[k, n, 3] y, float[m, n, 3] z, float[n, 3] v)
<bool going = {1}>
{
  t_1, t_2 = Loop (trips, going, x) <body = first
    (int64 i, bool cond, float[n, 3] h) => (bool c2, float[n, 3] h2, float[n, 3] t_7) {
      c2 = Identity (cond)
      h2 = Exp (h)
      t_7 = Neg (h2)
    }>
  t_3, t_4 = Loop (trips, going, t_1) <body = second
    (int64 i, bool cond, float[n, 3] h) => (bool c2, float[n, 3] h2, float[n, 3] t_8) {
      c2 = Identity (cond)
      h2 = Tanh (h)
      t_8 = Abs (h2)
    }>
  half = Constant <value_float = 0.5> ()
  y = Mul (t_2, half)
  z = Sub (t_4, half)
  v = Add (t_3, t_1)
}
"""


@pytest.mark.parametrize("trips", [0, 2])
def test_lists_without_a_name_follow_each_other(tmp_path: Path, trips: int) -> None:
    feeds = [{"x": normal(n, 3), "trips": number(trips)} for n in (1, 4)]
    check(tmp_path, UNNAMED, *feeds)


SCOPES = """
agraph (float[n, 4] x, int64 trips) => (float[n, 4] y)
<bool going = {1}>
{
  a = MatMul (x, net__first__weight)
  b = Add (a, net__first__bias)
  c = Loop (trips, going, b) <body = body
    (int64 i, bool cond, float[n, 4] h) => (bool c2, float[n, 4] h2) {
      c2 = Identity (cond)
      d = MatMul (h, net__cell__weight)
      e = Add (d, net__cell__bias)
      f = Relu (e)
      g = MatMul (f, net__cell__out__weight)
      h2 = Add (g, b)
    }>
  y = MatMul (c, net__last__weight)
}
"""


@pytest.mark.parametrize("trips", [0, 3])
def test_dotted_weights_in_bodies(tmp_path: Path, trips: int) -> None:
    weights = {}
    for number_, path in enumerate(
        ["net.first.weight", "net.first.bias", "net.cell.weight", "net.cell.bias"]
        + ["net.cell.out.weight", "net.last.weight"]
    ):
        shape = (4,) if path.endswith("bias") else (4, 4)
        weights[path] = normal(*shape, seed=number_) / 2
    feeds = [{"x": normal(n, 4), "trips": number(trips)} for n in (1, 5)]
    result = check(tmp_path, SCOPES, *feeds, weights=weights)
    assert "nn.Linear(4, 4)" in result


ITEM = """
agraph (seq(float[n, 3]) xs, optional(float[m, 3]) first, int64 trips)
  => (optional(float[q, 3]) last, seq(float[p, 3]) seen)
<bool going = {1}>
{
  none = SequenceEmpty <dtype = 1> ()
  last, seen = Loop (trips, going, first, none) <body = body
    (int64 i, bool cond, optional(float[m, 3]) h, seq(float[p, 3]) s)
    => (bool c2, optional(float[q, 3]) h2, seq(float[p2, 3]) s2) {
      c2 = Identity (cond)
      given = OptionalHasElement (h)
      next = If (given) <
        then_branch = g () => (float[a, 3] t) {
          value = OptionalGetElement (h)
          item = SequenceAt (xs, i)
          t = Concat <axis = 0> (value, item)
        },
        else_branch = h () => (float[b, 3] e) { e = SequenceAt (xs, i) }>
      h2 = Optional (next)
      s2 = SequenceInsert (s, next)
    }>
}
"""


@pytest.mark.parametrize("given", [True, False])
def test_optional_value_that_a_loop_carries(tmp_path: Path, given: bool) -> None:
    feeds = [
        {
            "xs": [normal(n + s, 3) for s in range(3)],
            "first": normal(2, 3) if given else None,
            "trips": number(3),
        }
        for n in (1, 4)
    ]
    check(tmp_path, ITEM, *feeds)


GREEDY = """
agraph (float[b, v] scores, float[v, v] table, int64 limit)
  => (int64[t, b] tokens, float[b, v] last)
<bool going = {1}, int64 end = {0}>
{
  last, tokens = Loop (limit, going, scores) <body = body
    (int64 step, bool cond, float[b, v] logits)
    => (bool more, float[b, v] following, int64[b] token) {
      token = ArgMax <axis = 1, keepdims = 0> (logits)
      rows = Gather (table, token)
      following = Sub (rows, logits)
      ended = Equal (token, end)
      number = Cast <to = 7> (ended)
      count = ReduceSum <keepdims = 0> (number)
      more = Equal (count, end)
    }>
}
"""


@pytest.mark.parametrize("limit", [0, 1, 8])
def test_greedy_decoding(tmp_path: Path, limit: int) -> None:
    feeds = [
        {"scores": normal(b, v), "table": normal(v, v), "limit": number(limit)}
        for b, v in [(1, 5), (3, 7)]
    ]
    check(tmp_path, GREEDY, *feeds)


SHAPES = """
agraph (float[b, s, 4] x, float[b, 4] h0, int64 trips)
  => (float[b, s, 2, 2] y, float[k, b, 2, s] z, int64[k] lengths)
<bool going = {1}, int64 two = {2}, int64[1] zero = {0}, int64[1] one = {1}>
{
  form = Constant <value_ints = [0, 0, 2, 2]> ()
  x4 = Reshape (x, form)
  half0 = Constant <value_ints = [2]> ()
  index = Constant <value_int = 1> ()
  y, h, z, lengths = Loop (trips, going, x4, h0) <body = body
    (int64 i, bool cond, float[b, s, 2, 2] a, float[b, 4] h)
    => (bool c2, float[b, s, 2, 2] a2, float[b, 4] h2, float[b, 2, s] piece, int64 n) {
      c2 = Identity (cond)
      inner = Shape (x)
      b1 = Slice (inner, zero, one)
      half = Constant <value_ints = [2, 2]> ()
      cut = Constant <value_ints = [2]> ()
      s1 = Slice (inner, one, cut)
      to = Concat <axis = 0> (b1, one, half)
      folded = Reshape (h, to)
      a2 = Add (a, folded)
      minus = Constant <value_ints = [-1]> ()
      to2 = Concat <axis = 0> (b1, half0, s1)
      firsts = Gather <axis = 3> (a2, index)
      piece0 = Transpose <perm = [0, 2, 1]> (firsts)
      piece = Reshape (piece0, to2)
      h2 = Tanh (h)
      n = Squeeze (s1)
    }>
}
"""


@pytest.mark.parametrize("trips", [1, 3])
def test_shape_arithmetic_on_outer_extents(tmp_path: Path, trips: int) -> None:
    feeds = [
        {"x": normal(b, s, 4), "h0": normal(b, 4), "trips": number(trips)}
        for b, s in [(1, 3), (2, 5)]
    ]
    check(tmp_path, SHAPES, *feeds)
