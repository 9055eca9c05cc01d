"""Layers in bodies with more nodes than the limit for inline branches."""

from pathlib import Path

import pytest

from tests.importer.looped import check, normal, number

WEIGHTS = {"matrix": normal(4, 4) / 2, "offset": normal(4, seed=3)}

LOOP = """
agraph (float[n, 4] x, int64 trips) => (float[n, 4] y, float[k, n, 4] rows)
<bool going = {1}>
{
  y, rows = Loop (trips, going, x) <body = body
    (int64 i, bool cond, float[n, 4] a)
    => (bool cond_out, float[n, 4] LAST, float[n, 4] row) {
      cond_out = Identity (cond)
      product = MatMul (a, matrix)
      h0 = Add (product, offset)
STEPS
      row = Tanh (h0)
    }>
}
"""
SCAN = """
agraph (float[n, 4] x, float[k, n, 4] xs) => (float[n, 4] y, float[k, n, 4] rows)
{
  y, rows = Scan <num_scan_inputs = 1, body = body
    (float[n, 4] a, float[n, 4] b) => (float[n, 4] LAST, float[n, 4] row) {
      sum = Add (a, b)
      product = MatMul (sum, matrix)
      h0 = Add (product, offset)
STEPS
      row = Tanh (h0)
    }> (x, xs)
}
"""
MAP = """
agraph (seq(float[n, 4]) xs) => (seq(float[n, 4]) ys)
{
  ys = SequenceMap <body = body (float[n, 4] a) => (float[n, 4] LAST) {
      product = MatMul (a, matrix)
      h0 = Add (product, offset)
STEPS
    }> (xs)
}
"""


def long_body(text: str, count: int) -> str:
    """Return ``text`` with ``count`` further nodes for STEPS."""
    words = ("Relu", "Tanh", "Sigmoid", "Abs")
    steps = [f"      h{i + 1} = {words[i % 4]} (h{i})" for i in range(count)]
    return text.replace("STEPS", "\n".join(steps)).replace("LAST", f"h{count}")


@pytest.mark.parametrize("count", [2, 12, 40])
def test_loop(tmp_path: Path, count: int) -> None:
    feeds = [{"x": normal(n, 4), "trips": number(t)} for n, t in ((1, 3), (3, 0))]
    text = check(tmp_path, long_body(LOOP, count), *feeds, weights=WEIGHTS)
    assert "nn.Linear(4, 4)" in text


@pytest.mark.parametrize("count", [2, 12, 40])
def test_scan(tmp_path: Path, count: int) -> None:
    feeds = [{"x": normal(n, 4), "xs": normal(5, n, 4)} for n in (1, 3)]
    text = check(tmp_path, long_body(SCAN, count), *feeds, weights=WEIGHTS)
    assert "nn.Linear(4, 4)" in text


@pytest.mark.parametrize("count", [2, 12, 40])
def test_sequence_map(tmp_path: Path, count: int) -> None:
    feeds = [{"xs": [normal(n, 4, seed=s) for s in range(3)]} for n in (1, 3)]
    text = check(tmp_path, long_body(MAP, count), *feeds, weights=WEIGHTS)
    assert "nn.Linear(4, 4)" in text


BRANCHED = """
agraph (float[n, 4] x, bool flag, int64 trips) => (float[n, 4] y)
<bool going = {1}>
{
  y = Loop (trips, going, x) <body = body
    (int64 i, bool cond, float[n, 4] a) => (bool cond_out, float[n, 4] next) {
      cond_out = Identity (cond)
      next = If (flag) <
        then_branch = g () => (float[n, 4] LAST) {
          product = MatMul (a, matrix)
          h0 = Add (product, offset)
STEPS
        },
        else_branch = h () => (float[n, 4] other) {
          product2 = MatMul (a, matrix2)
          other = Add (product2, offset2)
        }>
    }>
}
"""


@pytest.mark.parametrize("count", [2, 20])
def test_long_branches_in_a_loop(tmp_path: Path, count: int) -> None:
    others = {"matrix2": normal(4, 4, seed=7), "offset2": normal(4, seed=8)}
    feeds = [
        {"x": normal(n, 4), "flag": number(n > 1).astype(bool), "trips": number(2)}
        for n in (1, 3)
    ]
    text = long_body(BRANCHED, count)
    check(tmp_path, text, *feeds, weights={**WEIGHTS, **others})
