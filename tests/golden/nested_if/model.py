# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 2ba01b5f6dfe48f1245964340a100872ba8976a01f80880373b2da9ad73b2eac
# record sha256 235610d597049a10693b9a2a6d367c3fedd1c109fce0cf1c578be8727780dcca
# body   sha256 ca9682cfafc3fe1c2c70b31a57484bf782464943c5e148538abc6b158a6deaf1
"""Net: x, threshold -> y.

Outputs:
    y  float32[n, 2, 4]

Weights (8 numbers) are next to this file, in
``model.safetensors``.

The file is yours to edit: burn-import overwrites it only while "body" above still
matches.
"""

from pathlib import Path

import burn
from burn import Tensor, nn, ops

burn.require_version("0.1.0")


class Net(nn.Module):
    WEIGHTS = Path(__file__).with_name("model.safetensors")

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.parameter(4)
        self.shift = nn.parameter(4)

    @nn.check_inputs(x="float32[n, 2, 4]", threshold="float32[]")
    def __call__(self, x: Tensor, threshold: Tensor) -> Tensor:
        positive = ops.relu(x)
        top = x.max()
        if top > 1.0:
            if top > threshold:
                chosen = positive * self.scale
            else:
                chosen = ops.tanh(positive + self.shift)
            picked = chosen - x
        else:
            picked = -x
        return picked + positive
