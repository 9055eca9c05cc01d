# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 b75b82c092bb3b0e0b1303b713f8a065dc7a10c8bc7ee074d0671e5e6aa24337
# record sha256 2377ba71725b3fbf210fe04a4ed333e7c69c35c68459e05f64b1e6fae52268c6
# body   sha256 84d95a04978d62d82cb216e946a94b3b63cd810f752788aebeb1629b07a483b0
"""Net: x -> y.

Outputs:
    y  float32[?]

Weights (15 numbers) are next to this file, in
``model.safetensors``.

The file is yours to edit: burn-import overwrites it only while "body" above still
matches.
"""

from pathlib import Path

import burn
from burn import Tensor, nn

burn.require_version("0.1.0")


class Net(nn.Module):
    record_names = {"head_bias": "head.bias", "head_weight": "head.weight"}

    WEIGHTS = Path(__file__).with_name("model.safetensors")

    def __init__(self) -> None:
        super().__init__()
        self.head_weight = nn.parameter(4, 3)
        self.head_bias = nn.parameter(3)

    @nn.check_inputs(x="float32[n, 4]")
    def __call__(self, x: Tensor) -> Tensor:
        n = x.shape[0]
        rows = x.squeeze(0) if n == 1 else x
        return (rows @ self.head_weight + self.head_bias).reshape(-1)
