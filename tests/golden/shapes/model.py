# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 708ac3ec3d91de0047ef0639ecfe4cf79869974be866d079863d92f7900e99fa
# record sha256 44173224ba4f8336d363958c8f132bdcd2a2fbb741ab704cc6c0cbd42367b6cb
# body   sha256 50c002edf17addad6554324a062da0003b656042e48e44179ea0842f3450a865
"""Net: x -> scaled, target, half, exceeds.

Outputs:
    scaled   float32[batch * time, 2]
    target   int64[3]
    half     int64[]
    exceeds  bool[]

Weights (0 numbers) are next to this file, in
``model.safetensors``.

The file is yours to edit: burn-import overwrites it only while "body" above still
matches.
"""

from pathlib import Path
from typing import NamedTuple

import burn
from burn import Tensor, nn, ops

burn.require_version("0.1.0")


class NetOutput(NamedTuple):
    """What the model returns."""

    scaled: Tensor
    target: Tensor
    half: Tensor
    exceeds: Tensor


class Net(nn.Module):
    WEIGHTS = Path(__file__).with_name("model.safetensors")

    @nn.check_inputs(x="float32[batch, time, 6]")
    def __call__(self, x: Tensor) -> NetOutput:
        pairs = x.reshape(-1, 2, 3)  # [batch * time, 2, 3]
        size = pairs.shape[0]
        scaled = pairs.mean(-1) / ops.array(size // 2, dtype=burn.float32)
        return NetOutput(
            scaled,
            ops.array([size, 2, -1], dtype=burn.int64),
            ops.array(size // 2, dtype=burn.int64),
            scaled.max() > 0.1,
        )
