# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 e4759e20807dfd3ab28e20ea170e75e7dc565b73b36730ce0c3f095c5780bee7
# body   sha256 9b7409a315426edc12f0b00e193bfb7491cd1d7a2384fa45e7e64293a0c0e592
"""Net: x -> y.

Outputs:
    y  float32[batch, 6]

Weights (78 numbers) are next to this file, in
``model.safetensors``.

The file is yours to edit: burn-import overwrites it only while "body" above still
matches.
"""

from pathlib import Path
from typing import Self

import burn
from burn import Tensor, nn, ops

WEIGHTS = Path(__file__).with_name("model.safetensors")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(6, 6)
        self.head = nn.Linear(6, 6)
        self.head.bias = self.cell.bias

    @classmethod
    def load(
        cls, weights: str | Path = WEIGHTS, backend: burn.Backend | None = None
    ) -> Self:
        """Return the model with its trained weights, on ``backend`` (the CPU)."""
        return cls().load_weights(weights, backend)

    @nn.check_inputs(x="float32[batch, 6]")
    def __call__(self, x: Tensor) -> Tensor:
        return self.head(ops.tanh(self.cell(ops.tanh(self.cell(x)))))
