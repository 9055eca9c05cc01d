# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 81c95e1fcc6754d6d300ac7f5472aaa193f0366ee66f99be2bc45904f46edfdf
# record sha256 620e5fb907d88b5168c8336ca8d35f3c4d0da55f618d76350b1bfcf5ed547003
# body   sha256 1e5b940ad90c3dcf38738a10f11e281d4590847449b152d12b830437a324f6c1
"""Net: x, unused, mask, gain -> top, places, hidden, scaled.

Outputs:
    top     float32[n, 2]
    places  int64[n, 2]
    hidden  bool[n]
    scaled  float32[n, 3]

Weights (3 numbers) are next to this file, in
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

    top: Tensor
    places: Tensor
    hidden: Tensor
    scaled: Tensor


class Net(nn.Module):
    WEIGHTS = Path(__file__).with_name("model.safetensors")

    def __init__(self) -> None:
        super().__init__()
        self.gain_default = nn.parameter(3)

    @nn.check_inputs(
        x="float32[n, 3]", unused="float32[m]", mask="bool[n]", gain="float32[3]"
    )
    def __call__(
        self, x: Tensor, unused: Tensor, mask: Tensor, gain: Tensor | None = None
    ) -> NetOutput:
        if gain is None:
            gain = self.gain_default.value
        scaled = x * gain
        top, places = ops.topk(scaled, k=2)  # [n, 2]
        return NetOutput(top, places, ~mask, scaled)
