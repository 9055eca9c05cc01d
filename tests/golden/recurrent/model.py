# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 c1d5192e0a7656f523d4bbbed3b48116154d9632c7f851ee70868a2fecd5b0da
# body   sha256 488575c8c3539f050cd8776d1cb7feae8b799a76eb68974c04bbbba803735d69
"""Net: series, start -> forecast.

Inputs:
    series  float32[batch, time, 2]
    start   float32[batch, 3]

Outputs:
    forecast  float32[batch, 3, 3]

Weights (375 numbers) are next to this file, in
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
        self.encoder = nn.GRU(2, 4, num_layers=2, batch_first=True)
        self.decoder = Decoder()

    @classmethod
    def load(
        cls, weights: str | Path = WEIGHTS, backend: burn.Backend | None = None
    ) -> Self:
        """Return the model with its trained weights, on ``backend`` (the CPU)."""
        return cls().load_weights(weights, backend)

    def __call__(self, series: Tensor, start: Tensor) -> Tensor:
        _, encoder = self.encoder(series)  # [2, batch, 4]
        x = encoder[1]  # [batch, 4]
        return self.decoder(start, x, ops.tanh(x))


class Decoder(nn.Module):
    """``decoder``: [batch, 3] -> [batch, 3, 3]."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(3, 4)
        self.out = nn.Linear(4, 3)

    def __call__(self, x: Tensor, y: Tensor, carry: Tensor) -> Tensor:
        cell, cell2 = self.cell(x, (y, carry))  # [batch, 4]
        out = self.out(cell)  # [batch, 3]
        cell, cell2 = self.cell(out, (cell, cell2))  # [batch, 4]
        out2 = self.out(cell)  # [batch, 3]
        cell, _ = self.cell(out2, (cell, cell2))  # [batch, 4]
        return ops.concat(
            [out.unsqueeze(1), out2.unsqueeze(1), self.out(cell).unsqueeze(1)], axis=1
        )
