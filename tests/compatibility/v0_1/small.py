# Imported by burn-import 0.1.0 from small.onnx (opset 18).
# source sha256 2ccace97f6217871476509ed2c7e4babfe624a7bb8712120e7d9149ff7df0bce
# record sha256 7af63972312b77bf3a14f050b9282f169f320aa2e0abb97b4ccdf511b596d40f
# body   sha256 fb19a0ce87d98ee35af8df77b9e463b36127b262ef979b8a25ea129ce69d0bf5
"""Small: image -> logits.

Outputs:
    logits  float32[batch, 3]

Weights (55 numbers) are next to this file, in
``small.safetensors``.

The file is yours to edit: burn-import overwrites it only while "body" above still
matches.
"""

from pathlib import Path
from typing import Self

import burn
from burn import Tensor, nn, ops

WEIGHTS = Path(__file__).with_name("small.safetensors")


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 4, kernel_size=3, padding=1)
        self.head = nn.Linear(4, 3)

    @classmethod
    def load(
        cls,
        weights: str | Path = WEIGHTS,
        backend: burn.Backend | None = None,
        *,
        verify: bool = False,
    ) -> Self:
        """Return the model with its trained weights, on ``backend`` (the CPU)."""
        return cls().load_weights(weights, backend, verify=verify)

    @nn.check_inputs(image="float32[batch, 1, 8, 8]")
    def __call__(self, image: Tensor) -> Tensor:
        return self.head(ops.relu(self.stem(image)).mean((2, 3)))
