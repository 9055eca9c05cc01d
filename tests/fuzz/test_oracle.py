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
