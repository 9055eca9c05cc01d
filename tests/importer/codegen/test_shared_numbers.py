"""A one-element parameter with two uses in an operation is trained in both."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx

import burn
from burn import Autodiff, Cpu
from burn_import.loading import load

MODEL = """<ir_version: 9, opset_import: ["" : 18]>
g (float[1,1,2] x) => (float[a,b,c] y) <float[1] scale = {0.37}>
{ s = PRelu (x, scale)  y = Sum (s, scale, scale) }"""


def test_a_parameter_is_no_number_beside_itself(tmp_path: Path) -> None:
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "m.onnx")
    model: Any = load(tmp_path / "m.onnx")
    model.to(Autodiff(Cpu()))
    ((_, scale),) = model.parameters()
    y = model(burn.tensor(np.array([[[3, 4]]], np.float32)))
    grad = y.sum().backward()[scale]
    # The result is x + scale + scale: x is positive.
    expected = 2 * y.numpy().size
    np.testing.assert_allclose(grad.numpy(), expected, rtol=1e-6)
