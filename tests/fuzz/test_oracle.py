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


def test_inputs_keep_what_they_hold() -> None:
    feeds: Feeds = {"x": np.arange(12, dtype=np.float32).reshape(4, 3)}
    feeds |= {name: np.ones(3, np.float32) for name in ("s", "mean", "var")}
    Oracle(onnx.parser.parse_model(TEXT)).outputs(feeds)
    for name in ("s", "mean", "var"):
        np.testing.assert_array_equal(feeds[name], np.ones(3))
