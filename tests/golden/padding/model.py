# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 2cc19e83d22e13f4719f5e6a87ed7fe90d0d9a94b11a632e640ee0d9af0601bc
# body   sha256 63267dbfd3652a10cb3f841cd45f429a2ef1be9c42a6a37c0fb2639cb2cbc4a3
"""Net: image -> pooled.

Inputs:
    image  float32[batch, 2, height, width]

Outputs:
    pooled  float32[batch, 4, height, ?]

Weights (128 numbers) are in ``model.safetensors``, next to this file. The
file is yours to edit: burn-import overwrites it only while "body" above still matches.
"""

from pathlib import Path
from typing import Self

import burn
from burn import Tensor, nn, ops

WEIGHTS = Path(__file__).with_name("model.safetensors")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(
            2, 4, kernel_size=(3, 2), stride=(1, 2), padding=((0, 2), (1, 0))
        )
        self.second = nn.Conv2d(
            4, 4, kernel_size=3, padding=(2, 1), dilation=(2, 1), groups=2
        )

    @classmethod
    def load(
        cls, weights: str | Path = WEIGHTS, backend: burn.Backend | None = None
    ) -> Self:
        """Return the model with its trained weights, on ``backend`` (the CPU)."""
        return cls().load_weights(weights, backend)

    def __call__(self, image: Tensor) -> Tensor:
        # [batch, 4, height, (width - 1) // 2 + 1]
        leaky = ops.leaky_relu(self.second(ops.relu(self.first(image))), alpha=0.1)
        return ops.max_pool(
            leaky,
            kernel_size=(2, 3),
            stride=(1, 2),
            padding=((0, 1), (1, 1)),
            ceil_mode=True,
        )
