# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 b75b82c092bb3b0e0b1303b713f8a065dc7a10c8bc7ee074d0671e5e6aa24337
# record sha256 2377ba71725b3fbf210fe04a4ed333e7c69c35c68459e05f64b1e6fae52268c6
# body   sha256 d9a34bccb8396bcd382a4770defafe65ea5b4889b7552af3a9ea55082546c061
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
    WEIGHTS = Path(__file__).with_name("model.safetensors")

    def __init__(self) -> None:
        super().__init__()
        self.head = Head()

    @nn.check_inputs(x="float32[n, 4]")
    def __call__(self, x: Tensor) -> Tensor:
        n = x.shape[0]
        rows = x.squeeze(0) if n == 1 else x
        return (rows @ self.head.weight + self.head.bias).reshape(-1)


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.parameter(4, 3)
        self.bias = nn.parameter(3)
