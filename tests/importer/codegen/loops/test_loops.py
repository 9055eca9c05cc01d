"""Loops: the generated module gives the results of onnxruntime."""

from pathlib import Path

import numpy as np
import pytest

from tests.importer.looped import check, normal, number

TRUE, FALSE = np.array(True), np.array(False)
#: A trip count that means "unlimited".
ENDLESS = 2**63 - 1

FOR = """
agraph (float[n, 3, 2] x, int64 trips) => (float[n, 3, 2] last, float[k, n, 3, 2] rows)
<bool going = {1}>
{
  last, rows = Loop (trips, going, x) <body = body
    (int64 i, bool cond, float[n, 3, 2] carried)
    => (bool cond_out, float[n, 3, 2] next, float[n, 3, 2] row) {
      cond_out = Identity (cond)
      number = Cast <to = 1> (i)
      row = Add (carried, number)
      next = Tanh (row)
    }>
}
"""


@pytest.mark.parametrize("trips", [0, 1, 4])
def test_for_loop_with_a_count_of_run_time(tmp_path: Path, trips: int) -> None:
    feeds = [{"x": normal(n, 3, 2), "trips": number(trips)} for n in (2, 5)]
    text = check(tmp_path, FOR, *feeds)
    assert "for i in range(trips):" in text
    assert "break" not in text


@pytest.mark.parametrize("trips", [0, 1, 4])
def test_for_loop_with_a_stored_count(tmp_path: Path, trips: int) -> None:
    text = FOR.replace(", int64 trips)", ")")
    text = text.replace("going = {1}", f"going = {{1}}, int64 trips = {{{trips}}}")
    result = check(tmp_path, text, *({"x": normal(n, 3, 2)} for n in (2, 5)))
    assert f"range({trips})" in result
    assert ("stack_rows" in result) == (trips == 0)


WHILE = """
agraph (float[n, 3, 2] x, bool going, float limit)
  => (float[n, 3, 2] last, float[k, n] sums)
{
  last, sums = Loop (, going, x) <body = body
    (int64 i, bool cond, float[n, 3, 2] carried)
    => (bool cond_out, float[n, 3, 2] next, float[n] total) {
      two = Constant <value_float = 2.0> ()
      next = Mul (carried, two)
      axes = Constant <value_ints = [1, 2]> ()
      total = ReduceSum <keepdims = 0> (next, axes)
      size = ReduceL1 <keepdims = 0> (next)
      cond_out = Less (size, limit)
    }>
}
"""


def test_while_loop(tmp_path: Path) -> None:
    feeds = [
        {"x": normal(n, 3, 2), "going": going, "limit": np.float32(limit)}
        for n, going, limit in [(2, TRUE, 200), (4, TRUE, 0), (3, FALSE, 100)]
    ]
    feeds = [{k: np.asarray(v) for k, v in feed.items()} for feed in feeds]
    text = check(tmp_path, WHILE, *feeds)
    assert "while going:" in text


@pytest.mark.parametrize("form", ["stored", "omitted"])
def test_while_loop_that_begins_for_sure(tmp_path: Path, form: str) -> None:
    text = WHILE.replace(", bool going", "")
    if form == "stored":
        text = text.replace("\n{", "\n<bool going = {1}>\n{", 1)
    else:
        text = text.replace("(, going, x)", "(, , x)")
    feeds = [
        {"x": normal(n, 3, 2), "limit": np.array(limit, np.float32)}
        for n, limit in [(2, 200), (4, 0)]
    ]
    result = check(tmp_path, text, *feeds)
    assert "while True:" in result


BOTH = WHILE.replace("bool going,", "int64 trips, bool going,").replace(
    "Loop (,", "Loop (trips,"
)


@pytest.mark.parametrize("trips", [0, 3, ENDLESS])
@pytest.mark.parametrize("going", [True, False])
def test_count_and_condition(tmp_path: Path, trips: int, going: bool) -> None:
    feeds = [
        {
            "x": normal(n, 3, 2),
            "going": np.array(going),
            "limit": np.array(limit, np.float32),
            "trips": number(trips),
        }
        for n, limit in [(2, 200), (4, 0), (3, 20)]
    ]
    check(tmp_path, BOTH, *feeds)


def test_endless_count_that_is_stored(tmp_path: Path) -> None:
    text = BOTH.replace("int64 trips, ", "")
    text = text.replace("\n{", f"\n<int64 trips = {{{ENDLESS}}}>\n{{", 1)
    feed = {"x": normal(2, 3, 2), "going": TRUE, "limit": np.array(200, np.float32)}
    result = check(tmp_path, text, feed)
    assert "while going:" in result
    assert "range" not in result


def test_stored_condition_that_is_false(tmp_path: Path) -> None:
    text = FOR.replace("going = {1}", "going = {0}")
    feeds = [{"x": normal(n, 3, 2), "trips": number(3)} for n in (2, 5)]
    check(tmp_path, text, *feeds)


OLD = """
agraph (float[n, 3, 2] x, int64[1] trips, bool[1] going)
  => (float[n, 3, 2] last, float[k, n, 3, 2] rows)
{
  last, rows = Loop (trips, going, x) <body = body
    (int64[1] i, bool[1] cond, float[n, 3, 2] carried)
    => (bool[1] cond_out, float[n, 3, 2] next, float[n, 3, 2] row) {
      four = Constant <value = int64[1] {3}> ()
      cond_out = Less (i, four)
      number = Cast <to = 1> (i)
      row = Add (carried, number)
      next = Tanh (row)
    }>
}
"""


@pytest.mark.parametrize("trips", [0, 2, 9])
def test_count_and_condition_of_one_element(tmp_path: Path, trips: int) -> None:
    feeds = [
        {"x": normal(n, 3, 2), "trips": number(trips)[None], "going": TRUE[None]}
        for n in (2, 5)
    ]
    check(tmp_path, OLD, *feeds, opset=11)


SWAP = """
agraph (float[n, 2, 3] a, float[n, 2, 3] b, float[n, 2, 3] c, int64 trips)
  => (float[n, 2, 3] p, float[n, 2, 3] q, float[n, 2, 3] r, float[k, n, 2, 3] s,
      float[n, 2, 3] u)
<bool going = {1}>
{
  p, q, r, s = Loop (trips, going, a, b, c) <body = body
    (int64 i, bool cond, float[n, 2, 3] x, float[n, 2, 3] y, float[n, 2, 3] z)
    => (bool cond, float[n, 2, 3] y, float[n, 2, 3] x, float[n, 2, 3] z,
        float[n, 2, 3] y) {
    }>
  u = Sub (a, q)
}
"""


@pytest.mark.parametrize("trips", [0, 1, 2, 3])
def test_carried_values_that_swap_or_pass_through(tmp_path: Path, trips: int) -> None:
    feeds = [
        {k: normal(n, 2, 3, seed=i) for i, k in enumerate("abc")}
        | {"trips": number(trips)}
        for n in (1, 4)
    ]
    check(tmp_path, SWAP, *feeds)


TWICE = """
agraph (float[n, 2, 3] a, float[n, 2, 3] b, int64 trips)
  => (float[n, 2, 3] p, float[n, 2, 3] q, float[k, n, 2, 3] s, float[k, n, 2, 3] t,
      float[n, 2, 3] u)
<bool going = {1}>
{
  p, q, s, t = Loop (trips, going, a, a) <body = body
    (int64 i, bool cond, float[n, 2, 3] x, float[n, 2, 3] y)
    => (bool cond, float[n, 2, 3] z, float[n, 2, 3] z, float[n, 2, 3] z,
        float[n, 2, 3] same) {
      same = Identity (b)
      sum = Add (x, b)
      z = Sub (sum, y)
    }>
  u = Mul (a, b)
}
"""


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_results_that_are_given_twice(tmp_path: Path, trips: int) -> None:
    feeds = [
        {"a": normal(n, 2, 3), "b": normal(n, 2, 3, seed=7), "trips": number(trips)}
        for n in (1, 4)
    ]
    check(tmp_path, TWICE, *feeds)


ROTATE = """
agraph (float[n, 2] a, float[n, 2] b, float[n, 2] c, int64 trips)
  => (float[n, 2] p, float[n, 2] q, float[n, 2] r)
<bool going = {1}>
{
  p, q, r = Loop (trips, going, a, b, c) <body = body
    (int64 i, bool cond, float[n, 2] x, float[n, 2] y, float[n, 2] z)
    => (bool cond, float[n, 2] y, float[n, 2] z, float[n, 2] sum) {
      sum = Add (x, z)
    }>
}
"""


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_carried_values_that_move_up(tmp_path: Path, trips: int) -> None:
    feeds = [
        {k: normal(n, 2, seed=i) for i, k in enumerate("abc")}
        | {"trips": number(trips)}
        for n in (1, 4)
    ]
    check(tmp_path, ROTATE, *feeds)


GROWS = """
agraph (float[n, 2, 3] x, int64 trips) => (float[m, 2, 3] y, float z, int64[3] extents)
<bool going = {1}>
{
  y, again = Loop (trips, going, x, x) <body = body
    (int64 i, bool cond, float[m, 2, 3] carried, float[m2, 2, 3] same)
    => (bool cond_out, float[q, 2, 3] next, float[m3, 2, 3] same2) {
      cond_out = Identity (cond)
      twice = Add (x, x)
      next = Concat <axis = 0> (carried, twice)
      same2 = Neg (same)
    }>
  extents = Shape (y)
  z = ReduceMax <keepdims = 0> (again)
}
"""


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_value_that_grows(tmp_path: Path, trips: int) -> None:
    feeds = [{"x": normal(n, 2, 3), "trips": number(trips)} for n in (1, 4)]
    text = check(tmp_path, GROWS, *feeds)
    inside = text.partition("for _ in range(trips):")[2]
    assert "x + x" in inside


STORED = """
agraph (float[n, 2] x, int64 trips)
  => (float[n, 2] p, float[2] q, int64 r, float[n, 2] s)
<bool going = {1}, float[2] initial = {1.5, -2.0}, int64 zero = {0}>
{
  p, q, r, s = Loop (trips, going, x, initial, zero, x) <body = body
    (int64 i, bool cond, float[n, 2] x1, float[2] v, int64 c, float[n, 2] kept)
    => (bool cond_out, float[n, 2] x2, float[2] v2, int64 c2, float[n, 2] kept) {
      cond_out = Identity (cond)
      x2 = Add (x1, v)
      half = Constant <value_float = 0.5> ()
      v2 = Mul (v, half)
      c2 = Add (c, i)
    }>
}
"""


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_stored_initial_values(tmp_path: Path, trips: int) -> None:
    feeds = [{"x": normal(n, 2), "trips": number(trips)} for n in (1, 4)]
    check(tmp_path, STORED, *feeds)


def test_wholly_static_loop(tmp_path: Path) -> None:
    text = STORED.replace(", int64 trips)", ")")
    text = text.replace("int64 zero", "int64 trips = {3}, int64 zero")
    check(tmp_path, text, *({"x": normal(n, 2)} for n in (1, 4)))


AGAIN = """
agraph (float[n, 3] x, float[n, 3] y, int64 trips)
  => (float[n, 3] a, float[n, 3] b, float[n, 3] c, float[n, 3] x2)
<bool going = {1}>
{
  a = Loop (trips, going, x) <body = first
    (int64 i, bool cond, float[n, 3] h) => (bool cond_out, float[n, 3] h2) {
      cond_out = Identity (cond)
      h2 = Mul (h, y)
    }>
  b, c = Loop (trips, going, x, a) <body = second
    (int64 i, bool cond, float[n, 3] h, float[n, 3] g)
    => (bool cond_out, float[n, 3] h2, float[n, 3] g2) {
      cond_out = Identity (cond)
      h2 = Sub (h, a)
      g2 = Add (g, h)
    }>
  x2 = Add (x, c)
}
"""


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_inputs_and_results_that_are_used_again(tmp_path: Path, trips: int) -> None:
    feeds = [
        {"x": normal(n, 3), "y": normal(n, 3, seed=5), "trips": number(trips)}
        for n in (1, 4)
    ]
    check(tmp_path, AGAIN, *feeds)


RANK = """
agraph (float[n, 3] x, int64 trips) => (float y, float[k] sums)
<bool going = {1}, int64[1] first = {0}>
{
  z, sums = Loop (trips, going, x) <body = body
    (int64 i, bool cond, float h) => (bool cond_out, float h2, float total) {
      cond_out = Identity (cond)
      h2 = Unsqueeze (h, first)
      total = ReduceSum <keepdims = 0> (h)
    }>
  y = ReduceMax <keepdims = 0> (z)
}
"""


@pytest.mark.parametrize("trips", [0, 3])
def test_value_whose_rank_grows(tmp_path: Path, trips: int) -> None:
    model = RANK.replace("float h)", "float[] h)") if not trips else RANK
    feeds = [{"x": normal(n, 3), "trips": number(trips)} for n in (1, 4)]
    check(tmp_path, model, *feeds)


LENGTHS = """
agraph (float[n, 4] x, int64 trips) => (float[m, 4] y, int64[k] lengths)
<bool going = {1}, int64[1] zero = {0}, int64[1] one = {1}>
{
  y, lengths = Loop (trips, going, x) <body = body
    (int64 i, bool cond, float[a, 4] h) => (bool cond_out, float[b, 4] h2, int64 c) {
      shape = Shape <start = 0, end = 1> (h)
      less = Sub (shape, one)
      h2 = Slice (h, zero, less, zero)
      c = Squeeze (shape)
      two = Constant <value_ints = [2]> ()
      more = Greater (shape, two)
      cond_out = Squeeze (more)
    }>
}
"""


@pytest.mark.parametrize("trips", [0, 1, 9])
def test_extent_that_changes_and_decides(tmp_path: Path, trips: int) -> None:
    feeds = [{"x": normal(n, 4), "trips": number(trips)} for n in (3, 6)]
    check(tmp_path, LENGTHS, *feeds)
