# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 ab6f7a036657e85a24cd290dc50a0397b2ed843075f25eb6765df97bf00f466b
# body   sha256 57fcd8b13afee2337c4b2ba7304ff8780ba527b5064bfb9af59181b6ca28e5ca
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
        self.second = nn.Conv2d(4, 4, kernel_size=3, padding=1, groups=2)

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
