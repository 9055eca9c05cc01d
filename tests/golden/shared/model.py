# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 e4759e20807dfd3ab28e20ea170e75e7dc565b73b36730ce0c3f095c5780bee7
# body   sha256 98a4c03afa396585148aedfe47e5e95788e62fa7ac0c478810d243e91d46e60f
"""Net: x -> y.

Inputs:
    x  float32[batch, 6]

Outputs:
    y  float32[batch, 6]

Weights (84 numbers) are next to this file, in
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

    @classmethod
    def load(
        cls, weights: str | Path = WEIGHTS, backend: burn.Backend | None = None
    ) -> Self:
        """Return the model with its trained weights, on ``backend`` (the CPU)."""
        return cls().load_weights(weights, backend)

    def __call__(self, x: Tensor) -> Tensor:
        return self.head(ops.tanh(self.cell(ops.tanh(self.cell(x)))))
