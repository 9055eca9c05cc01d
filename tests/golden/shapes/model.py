# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 b9170a9b645a0c910a4108cac2e3bc234e791ceaa2d93e7449845070eeda84c3
# body   sha256 cc90fac992a944f19084af34afefc45415595a2d95eb83eff013d0230d12eecd
"""Net: x -> scaled, target, half, exceeds.

Inputs:
    x  float32[batch, time, 6]

Outputs:
    scaled   float32[batch * time, 2]
    target   int64[3]
    half     int64[]
    exceeds  bool[]

Weights (0 numbers) are in ``model.safetensors``, next to this file. The
file is yours to edit: burn-import overwrites it only while "body" above still matches.
"""

from pathlib import Path
from typing import NamedTuple, Self

import burn
from burn import Tensor, nn, ops

WEIGHTS = Path(__file__).with_name("model.safetensors")


class NetOutput(NamedTuple):
    """What the model returns."""

    scaled: Tensor
    target: Tensor
    half: Tensor
    exceeds: Tensor


class Net(nn.Module):
    @classmethod
    def load(
        cls, weights: str | Path = WEIGHTS, backend: burn.Backend | None = None
    ) -> Self:
        """Return the model with its trained weights, on ``backend`` (the CPU)."""
        return cls().load_weights(weights, backend)

    def __call__(self, x: Tensor) -> NetOutput:
        batch, time = x.shape[:2]
        x = x.reshape(size, 2, 3)  # [batch * time, 2, 3]
        size = x.shape[0]
        half = ops.trunc_div(ops.array(size, dtype=burn.int64), 2)  # []
        scaled = x.mean(-1) / half.cast(burn.float32)  # [batch * time, 2]
        return NetOutput(
            scaled, ops.array([size, 2, -1], dtype=burn.int64), half, scaled.max() > 0.1
        )
