# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 7dedd1980823696f035290b0d4180d4e71191ddde6d5bd790df4667676f783d3
# record sha256 f97a07ac90e925892699665fcf0303c60dbb3d383c2ab08dd78b334daa933144
# body   sha256 0b60c70c5501f3a91493b393d37f2f75853acf0a1ee646f273ded2126d4aa651
"""Net: x, h0, c0 -> sequence, hn, cn.

Outputs:
    sequence  float32[batch, time, 10]
    hn        float32[2, batch, 5]
    cn        float32[2, batch, 5]

Weights (400 numbers) are next to this file, in
``model.safetensors``.

The file is yours to edit: burn-import overwrites it only while "body" above still
matches.
"""

from pathlib import Path
from typing import NamedTuple

import burn
from burn import Tensor, nn

burn.require_version("0.1.0")


class NetOutput(NamedTuple):
    """What the model returns."""

    sequence: Tensor
    hn: Tensor
    cn: Tensor


class Net(nn.Module):
    WEIGHTS = Path(__file__).with_name("model.safetensors")

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(3, 5, batch_first=True, bidirectional=True)

    @nn.check_inputs(
        x="float32[batch, time, 3]",
        h0="float32[2, batch, 5]",
        c0="float32[2, batch, 5]",
    )
    def __call__(self, x: Tensor, h0: Tensor, c0: Tensor) -> NetOutput:
        sequence, (hn, cn) = self.rnn(x, (h0, c0))  # [batch, time, 10]
        return NetOutput(sequence, hn, cn)
