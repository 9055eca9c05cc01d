"""Sequences and optionals: the generated module gives the results of onnxruntime."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.importer.looped import check, normal, number

INTO = """
agraph (seq(float[n, 3]) xs, float[m, 3] y, int64 trips)
  => (seq(float[p, 3]) ys, int64 length, float[q, 3] joined)
<bool going = {1}>
{
  ys = Loop (trips, going, xs) <body = body
    (int64 i, bool cond, seq(float[p, 3]) carried)
    => (bool cond_out, seq(float[q, 3]) next) {
      cond_out = Identity (cond)
      number = Cast <to = 1> (i)
      shifted = Add (y, number)
      next = SequenceInsert (carried, shifted)
    }>
  length = SequenceLength (ys)
  joined = ConcatFromSequence <axis = 0> (ys)
}
"""


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_sequence_that_a_loop_carries(tmp_path: Path, trips: int) -> None:
    feeds = [
        {
            "xs": [normal(n, 3, seed=s) for s in range(4)],
            "y": normal(5, 3),
            "trips": number(trips),
        }
        for n in (1, 4)
    ]
    check(tmp_path, INTO, *feeds)


FRESH = """
agraph (float[n, 3] x, int64 trips) => (seq(float[p, 3]) ys, seq(float[q, 3]) zs,
  float[k, n, 3] stacked)
<bool going = {1}>
{
  none = SequenceEmpty <dtype = 1> ()
  ys, zs, last = Loop (trips, going, none, none, x) <body = body
    (int64 i, bool cond, seq(float[p, 3]) a, seq(float[p, 3]) b, float[n, 3] h)
    => (bool cond_out, seq(float[q, 3]) a2, seq(float[q, 3]) b2, float[n, 3] h2) {
      cond_out = Identity (cond)
      h2 = Tanh (h)
      a2 = SequenceInsert (a, h)
      zero = Constant <value_int = 0> ()
      b2 = SequenceInsert (b, h2, zero)
    }>
  stacked = ConcatFromSequence <axis = 0, new_axis = 1> (ys)
}
"""


@pytest.mark.parametrize("trips", [1, 3])
def test_sequences_that_begin_empty(tmp_path: Path, trips: int) -> None:
    feeds = [{"x": normal(n, 3), "trips": number(trips)} for n in (1, 4)]
    check(tmp_path, FRESH, *feeds)


TWO = """
agraph (float[n, 3] x, int64 trips) => (seq(float[p, 3]) ys)
<bool going = {1}>
{
  none = SequenceEmpty <dtype = 1> ()
  ys = Loop (trips, going, none) <body = body
    (int64 i, bool cond, seq(float[p, 3]) a) => (bool cond_out, seq(float[q, 3]) a3) {
      cond_out = Identity (cond)
      number = Cast <to = 1> (i)
      shifted = Add (x, number)
      a2 = SequenceInsert (a, x)
      a3 = SequenceInsert (a2, shifted)
    }>
}
"""


def test_two_items_a_round(tmp_path: Path) -> None:
    check(tmp_path, TWO, *({"x": normal(n, 3), "trips": number(3)} for n in (1, 4)))


TAKES = """
agraph (seq(float[n, 3]) xs, float[n, 3] x)
  => (float[n, 3] y, float[k, n, 3] rows, float[n, 3] w, seq(float[n, 3]) rest)
<bool going = {1}>
{
  length = SequenceLength (xs)
  y, rows = Loop (length, going, x) <body = body
    (int64 i, bool cond, float[n, 3] h) => (bool cond_out, float[n, 3] h2,
     float[n, 3] row) {
      cond_out = Identity (cond)
      item = SequenceAt (xs, i)
      h2 = Sub (item, h)
      row = Mul (h2, x)
    }>
  minus = Constant <value_int = -1> ()
  last = SequenceAt (xs, minus)
  w = Add (last, y)
  rest = SequenceErase (xs, minus)
}
"""


@pytest.mark.parametrize("length", [1, 3])
def test_sequence_that_a_loop_reads(tmp_path: Path, length: int) -> None:
    feeds = [
        {"xs": [normal(n, 3, seed=s) for s in range(length)], "x": normal(n, 3)}
        for n in (1, 4)
    ]
    check(tmp_path, TAKES, *feeds)


ROUNDS_OF_ONE_ELEMENT = """
agraph (seq(float[n, 3]) xs, float[n, 3] x, int64[1] trips, int64[1] place)
  => (float[n, 3] y, float[n, 3] z, seq(float[n, 3]) more, seq(float[n, 3]) rest)
<bool going = {1}>
{
  y = Loop (trips, going, x) <body = body
    (int64[1] i, bool cond, float[n, 3] h) => (bool cond_out, float[n, 3] h2) {
      cond_out = Identity (cond)
      item = SequenceAt (xs, i)
      h2 = Sub (item, h)
    }>
  z = SequenceAt (xs, place)
  more = SequenceInsert (xs, x, place)
  rest = SequenceErase (xs, place)
}
"""


def test_positions_that_are_vectors_of_one_element(tmp_path: Path) -> None:
    """PyTorch's exporter counts iterations as int64[1], like its trip counts."""
    xs = [normal(2, 3, seed=s) for s in range(3)]
    one = {"trips": np.array([2]), "place": np.array([1])}
    feeds = {"xs": xs, "x": normal(2, 3), **one}
    check(tmp_path, ROUNDS_OF_ONE_ELEMENT, feeds)


MAPPED = """
agraph (seq(float[n, 3]) xs, seq(float[m]) ys, float[3] z, float[1] w)
  => (seq(float[n, 3]) a, seq(float[p]) b, seq(int64[2]) c)
{
  outer = Exp (w)
  a, b, c = SequenceMap <body = body
    (float[n, 3] x, float[m] y, float[3] same)
    => (float[n, 3] u, float[p] v, int64[2] s) {
      sum = Add (x, same)
      u = Mul (sum, outer)
      v = Concat <axis = 0> (y, same)
      s = Shape (x)
    }> (xs, ys, z)
}
"""


@pytest.mark.parametrize("length", [1, 3])
def test_sequence_map_of_two(tmp_path: Path, length: int) -> None:
    feeds = [
        {
            "xs": [normal(n + s, 3) for s in range(length)],
            "ys": [normal(5 - s) for s in range(length)],
            "z": normal(3),
            "w": normal(1),
        }
        for n in (1, 4)
    ]
    text = check(tmp_path, MAPPED, *feeds)
    assert "for x, y in zip(xs, ys, strict=True):" in text


STORED = """
agraph (float[n, 2] x, bool flag) => (seq(float[k, 2]) ys, seq(float[k, 2]) zs,
  float[m, 2] w)
<float[1, 2] a = {1, 2}, float[2, 2] b = {3, 4, 5, 6}, int64 one = {1}>
{
  ys = SequenceConstruct (a, x, b)
  less = SequenceErase (ys, one)
  zs = If (flag) <
    then_branch = g () => (seq(float[k, 2]) t) { t = SequenceInsert (less, a, one) },
    else_branch = h () => (seq(float[k, 2]) e) { e = SequenceEmpty <dtype = 1> () }>
  w = SequenceAt (ys, one)
}
"""


def test_stored_tensors_in_sequences(tmp_path: Path) -> None:
    feeds = [
        {"x": normal(n, 2), "flag": np.array(flag)}
        for n in (1, 4)
        for flag in (True, False)
    ]
    check(tmp_path, STORED, *feeds)


SPLIT = """
agraph (float[n, 4, 2] x, int64[k] sizes, int64 size)
  => (seq(float[n, 4, 2]) a, seq(float[n, 4, 2]) b, seq(float[n, 4]) c,
      float[n, 4, 2] d)
{
  a = SplitToSequence <axis = 1> (x, sizes)
  b = SplitToSequence <axis = -2> (x, size)
  c = SplitToSequence <axis = 2, keepdims = 0> (x)
  d = ConcatFromSequence <axis = -2> (b)
}
"""


def test_splitting(tmp_path: Path) -> None:
    feeds: list[dict[str, Any]] = [
        {"x": normal(n, 4, 2), "sizes": np.array(sizes, np.int64), "size": number(size)}
        for n, sizes, size in [(1, [1, 3], 3), (3, [2, 0, 2], 1)]
    ]
    check(tmp_path, SPLIT, *feeds)


MAYBE = """
agraph (optional(float[n, 2]) x, float[m, 2] y)
  => (float[k, 2] z, bool given, optional(float[n, 2]) same)
{
  given = OptionalHasElement (x)
  z = If (given) <
    then_branch = g () => (float[n, 2] t) {
      value = OptionalGetElement (x)
      t = Exp (value)
    },
    else_branch = h () => (float[m, 2] e) { e = Neg (y) }>
  same = Identity (x)
}
"""


@pytest.mark.parametrize("given", [True, False])
def test_optional_input_and_output(tmp_path: Path, given: bool) -> None:
    feeds = [
        {"x": normal(n, 2) if given else None, "y": normal(n + 1, 2)} for n in (1, 4)
    ]
    check(tmp_path, MAYBE, *feeds)


LISTS = """
agraph (optional(seq(float[n, 2])) xs, float[m, 2] y) => (seq(float[k, 2]) zs)
{
  absent = OptionalHasElement (xs)
  none = Not (absent)
  zs = If (none) <
    then_branch = g () => (seq(float[m, 2]) t) { t = SequenceConstruct (y, y) },
    else_branch = h () => (seq(float[n, 2]) e) {
      value = OptionalGetElement (xs)
      e = SequenceInsert (value, y)
    }>
}
"""


@pytest.mark.parametrize("given", [True, False])
def test_optional_sequence(tmp_path: Path, given: bool) -> None:
    feeds = [
        {"xs": [normal(n, 2), normal(3, 2)] if given else None, "y": normal(n + 1, 2)}
        for n in (1, 4)
    ]
    text = check(tmp_path, LISTS, *feeds)
    assert "if xs is None" in text
