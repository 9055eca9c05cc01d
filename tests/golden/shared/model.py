# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 e4759e20807dfd3ab28e20ea170e75e7dc565b73b36730ce0c3f095c5780bee7
# record sha256 22de8b0180ab4c38e518efbca8d1a1b41723e2eed1f9a48853837e2f99117545
# body   sha256 2deafcf2f09c4cf5f388065ec6d7c44ff742d1300de09ce57e4caed28bf4515f
"""Net: x -> y.

Outputs:
    y  float32[batch, 6]

Weights (78 numbers) are next to this file, in
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
        self.cell = nn.Linear(6, 6)
        self.head = nn.Linear(6, 6)
        self.head.bias = self.cell.bias

    @nn.check_inputs(x="float32[batch, 6]")
    def __call__(self, x: Tensor) -> Tensor:
        second = self.cell(ops.tanh(self.cell(x)))
        return self.head(ops.tanh(second))
