# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 7dedd1980823696f035290b0d4180d4e71191ddde6d5bd790df4667676f783d3
# body   sha256 91d38fceaea2b9aad76aa14462d1a34f40c4a7cf478acd770783ecc21ce0d153
"""Net: x, h0, c0 -> sequence, hn, cn.

Inputs:
    x   float32[batch, time, 3]
    h0  float32[2, batch, 5]
    c0  float32[2, batch, 5]

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
from typing import NamedTuple, Self

import burn
from burn import Tensor, nn, ops

WEIGHTS = Path(__file__).with_name("model.safetensors")


class NetOutput(NamedTuple):
    """What the model returns."""

    sequence: Tensor
    hn: Tensor
    cn: Tensor


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = Rnn()

    @classmethod
    def load(
        cls, weights: str | Path = WEIGHTS, backend: burn.Backend | None = None
    ) -> Self:
        """Return the model with its trained weights, on ``backend`` (the CPU)."""
        return cls().load_weights(weights, backend)

    def __call__(self, x: Tensor, h0: Tensor, c0: Tensor) -> NetOutput:
        batch, time = x.shape[:2]
        # [time, 2, batch, 5]
        x, hn, cn = ops.lstm(
            x.transpose(0, 1),
            self.rnn.weight_ih,
            self.rnn.weight_hh,
            self.rnn.bias,
            h0,
            c0,
            direction="bidirectional",
        )
        return NetOutput(x.permute(2, 0, 1, 3).reshape(batch, time, 10), hn, cn)


class Rnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight_ih = nn.parameter(2, 20, 3)
        self.weight_hh = nn.parameter(2, 20, 5)
        self.bias = nn.parameter(2, 40)
