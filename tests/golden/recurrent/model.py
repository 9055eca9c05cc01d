# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 c1d5192e0a7656f523d4bbbed3b48116154d9632c7f851ee70868a2fecd5b0da
# record sha256 c2dd01db1f50c819295ff2dc3583406dbade4d20a95a5504a8bb1b67e75973b2
# body   sha256 bcbe47f2e549378e2bb331205425ae43fa91524acd497f5ce60c11500f631757
"""Net: series, start -> forecast.

Outputs:
    forecast  float32[batch, 3, 3]

Weights (375 numbers) are next to this file, in
``model.safetensors``.

The file is yours to edit: burn-import overwrites it only while "body" above still
matches.
"""

from pathlib import Path

import burn
from burn import Tensor, nn, ops

burn.require_version("0.1.0")


class Net(nn.Module):
    WEIGHTS = Path(__file__).with_name("model.safetensors")

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.GRU(2, 4, num_layers=2, batch_first=True)
        self.decoder = Decoder()

    @nn.check_inputs(series="float32[batch, time, 2]", start="float32[batch, 3]")
    def __call__(self, series: Tensor, start: Tensor) -> Tensor:
        _, hidden = self.encoder(series)  # [2, batch, 4]
        hidden = hidden[1]  # [batch, 4]
        return self.decoder(hidden, start, ops.tanh(hidden))


class Decoder(nn.Module):
    """``decoder``: [batch, 4] -> [batch, 3, 3]."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(3, 4)
        self.out = nn.Linear(4, 3)

    def __call__(self, x: Tensor, start: Tensor, carry: Tensor) -> Tensor:
        hidden_states: list[Tensor] = []
        for _ in range(3):
            x, carry = self.cell(start, (x, carry))  # [batch, 4]
            start = self.out(x)  # [batch, 3]
            hidden_states.append(start)
        return ops.stack(hidden_states, axis=1)
