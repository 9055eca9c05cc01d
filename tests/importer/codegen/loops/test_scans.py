"""Scan: the generated module gives the results of onnxruntime."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import burn
from tests.importer.looped import check, normal
from tests.modules import import_file

SUMS = """
agraph (float[n, 2] first, float[t, n, 2] xs, float[t, 2] ys)
  => (float[n, 2] last, float[t, n, 2] rows)
{
  last, rows = Scan <num_scan_inputs = 2, body = body
    (float[n, 2] h, float[n, 2] x, float[2] y)
    => (float[n, 2] h2, float[n, 2] row) {
      sum = Add (h, x)
      h2 = Mul (sum, y)
      row = Tanh (h2)
    }> (first, xs, ys)
}
"""


@pytest.mark.parametrize("length", [1, 4])
def test_scan_of_a_run_time_length(tmp_path: Path, length: int) -> None:
    feeds = [
        {"first": normal(n, 2), "xs": normal(length, n, 2), "ys": normal(length, 2)}
        for n in (1, 3)
    ]
    check(tmp_path, SUMS, *feeds)


AXES = """
agraph (float[n, 2] a, float b, float[n, t, 2] xs, float[2, n, t] ys)
  => (float[n, 2] p, float q, float[n, t, 2] r, float[2, n, t] s, float[t] u)
{
  p, q, r, s, u = Scan <num_scan_inputs = 2, scan_input_axes = [1, -1],
    scan_input_directions = [0, 1], scan_output_axes = [1, -1, 0],
    scan_output_directions = [1, 0, 1], body = body
    (float[n, 2] h, float g, float[n, 2] x, float[2, n] y)
    => (float[n, 2] h2, float g2, float[n, 2] r1, float[2, n] r2, float r3) {
      turned = Transpose (y)
      sum = Add (h, x)
      h2 = Sub (sum, turned)
      r1 = Mul (h2, x)
      r2 = Add (y, g)
      r3 = ReduceSum <keepdims = 0> (r1)
      g2 = Add (g, r3)
    }> (a, b, xs, ys)
}
"""


@pytest.mark.parametrize("length", [1, 4])
def test_axes_and_directions(tmp_path: Path, length: int) -> None:
    feeds = [
        {
            "a": normal(n, 2),
            "b": normal(),
            "xs": normal(n, length, 2),
            "ys": normal(2, n, length),
        }
        for n in (1, 3)
    ]
    check(tmp_path, AXES, *feeds)


OUTSIDE = """
agraph (float[n, 4] x, float[5, n, 3] xs) => (float[5, n, 4] rows)
<float[4] bias = {1, -1, 2, 0.5}>
{
  gate = Sigmoid (x)
  last, rows = Scan <num_scan_inputs = 1, body = body
    (float[n, 4] h, float[n, 3] step) => (float[n, 4] h2, float[n, 4] h3) {
      product = MatMul (step, weight)
      sum = Add (product, bias)
      both = Add (sum, h)
      gated = Mul (both, gate)
      h2 = Tanh (gated)
      h3 = Identity (h2)
    }> (x, xs)
}
"""


def test_scan_with_weights_and_outer_values(tmp_path: Path) -> None:
    feeds = [{"x": normal(n, 4), "xs": normal(5, n, 3)} for n in (1, 3)]
    text = check(tmp_path, OUTSIDE, *feeds, weights={"weight": normal(3, 4)})
    assert "nn.Linear(3, 4)" in text
    assert text.index("ops.sigmoid") < text.index("for ")


STATELESS = """
agraph (float[t, n, 3] xs) => (float[t, n, 3] ys, float[t, n, 3] zs)
{
  ys, zs = Scan <num_scan_inputs = 1, body = body
    (float[n, 3] x) => (float[n, 3] y, float[n, 3] z) {
      y = Identity (x)
      z = Exp (x)
    }> (xs)
}
"""


@pytest.mark.parametrize("length", [1, 3])
def test_scan_without_state(tmp_path: Path, length: int) -> None:
    check(tmp_path, STATELESS, *({"xs": normal(length, n, 3)} for n in (1, 4)))


BATCHED = """
agraph (LENGTHSfloat[b, 2] first, float[b, t, 2] xs, float[b, t] ys)
  => (float[b, 2] last, float[b, t, 2] rows)
{
  last, rows = Scan <num_scan_inputs = 2, directions = [0, 1], body = body
    (float[2] h, float[2] x, float y) => (float[2] h2, float[2] row) {
      sum = Add (h, x)
      h2 = Mul (sum, y)
      row = Tanh (h2)
    }> (GIVEN, first, xs, ys)
}
"""


@pytest.mark.parametrize("batch", [1, 3])
def test_old_scan_of_a_batch(tmp_path: Path, batch: int) -> None:
    text = BATCHED.replace("LENGTHS", "").replace("GIVEN", "")
    feeds = [
        {"first": normal(batch, 2), "xs": normal(batch, t, 2), "ys": normal(batch, t)}
        for t in (1, 4)
    ]
    check(tmp_path, text, *feeds, opset=8)


@pytest.mark.parametrize("lengths", [[4], [1, 4, 2], [3, 2]])
def test_old_scan_of_elements_of_different_lengths(
    tmp_path: Path, lengths: list[int]
) -> None:
    text = BATCHED.replace("LENGTHS", "int64[b] sizes, ").replace("GIVEN", "sizes")
    batch = len(lengths)
    feeds = [
        {
            "sizes": np.array(lengths, np.int64),
            "first": normal(batch, 2),
            "xs": normal(batch, t, 2),
            "ys": normal(batch, t),
        }
        for t in (4, 6)
    ]
    check(tmp_path, text, *feeds, opset=8)


def test_scan_of_no_slices(tmp_path: Path) -> None:
    """onnxruntime refuses it; the state stays the same, and there are no rows."""
    check(tmp_path, SUMS)
    module: Any = import_file(tmp_path / "net.py")
    first = normal(3, 2)
    empty = (burn.tensor(normal(0, *shape)) for shape in ((3, 2), (2,)))
    last, rows = module.Net.load()(burn.tensor(first), *empty)
    np.testing.assert_array_equal(last.numpy(), first)
    assert rows.numpy().shape[0] == 0 and rows.shape[2] == 2


def test_lengths_that_differ_are_refused(tmp_path: Path) -> None:
    check(tmp_path, SUMS)
    model: Any = import_file(tmp_path / "net.py").Net.load()
    given = [burn.tensor(normal(*s)) for s in ((3, 2), (4, 3, 2), (5, 2))]
    with pytest.raises(ValueError, match="t is 4 in input 'xs'"):
        model(*given)
    with pytest.raises(ValueError, match="longer"):
        inspect.unwrap(type(model).__call__)(model, *given)  # without the declaration
