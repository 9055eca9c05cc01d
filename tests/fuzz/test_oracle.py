"""What onnxruntime is asked."""

from typing import Any

import numpy as np
import onnx.parser

from tests.fuzz.oracle import Oracle

Feeds = dict[str, np.ndarray[Any, Any]]

TEXT = """<ir_version: 9, opset_import: ["" : 15]>
g (float[4,3] x, float[3] s, float[3] mean, float[3] var) => (float[4,3] y)
{ z, a, b = BatchNormalization <training_mode = 1> (x, s, s, mean, var) y = Neg (z) }
"""


STORED = """<ir_version: 9, opset_import: ["" : 15]>
g (float[4,3] x, float[3] s) => (float[4,3] y, float[3] v)
<float[3] mean = {1, 1, 1}, float[3] var = {1, 1, 1}>
{ y, a, b = BatchNormalization <training_mode = 1> (x, s, s, mean, var) v = Neg (b) }
"""


def test_stored_numbers_keep_what_they_hold() -> None:
    """onnxruntime writes running statistics over stored ones, in every run."""
    oracle = Oracle(onnx.parser.parse_model(STORED))
    feeds: Feeds = {"x": np.arange(12, dtype=np.float32).reshape(4, 3)}
    feeds["s"] = np.ones(3, np.float32)
    first, second = oracle.outputs(feeds), oracle.outputs(feeds)
    np.testing.assert_array_equal(first[1], second[1])


def test_inputs_keep_what_they_hold() -> None:
    feeds: Feeds = {"x": np.arange(12, dtype=np.float32).reshape(4, 3)}
    feeds |= {name: np.ones(3, np.float32) for name in ("s", "mean", "var")}
    Oracle(onnx.parser.parse_model(TEXT)).outputs(feeds)
    for name in ("s", "mean", "var"):
        np.testing.assert_array_equal(feeds[name], np.ones(3))


ROUNDS = """<ir_version: 9, opset_import: ["" : 17]>
g (float[2,4,3] x, float[3] s, float[3] mean, float[3] var)
  => (float[3] t, float[2,3] m, float[3] n)
{ t, m = Scan <num_scan_inputs = 1, body = b (float[3] p, float[4,3] r)
    => (float[3] q, float[3] a) {
      q = Identity (p)
      z, c, d = BatchNormalization <training_mode = 1, momentum = 0.5>
        (r, s, s, mean, var)
      a = Neg (c) }> (s, x)
  n = Neg (mean) }
"""


def test_statistics_are_the_same_in_every_round_and_for_other_nodes() -> None:
    feeds: Feeds = {"x": np.tile(np.arange(12, dtype=np.float32), 2).reshape(2, 4, 3)}
    feeds |= {name: np.ones(3, np.float32) for name in ("s", "mean", "var")}
    _, rounds, mean = Oracle(onnx.parser.parse_model(ROUNDS)).outputs(feeds)
    expected = -(1 + feeds["x"][0].mean(0)) / 2
    np.testing.assert_allclose(rounds, [expected, expected], rtol=1e-6)
    np.testing.assert_array_equal(mean, [-1, -1, -1])
