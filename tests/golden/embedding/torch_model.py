# Imported by burn-import 0 from model.onnx (opset 18, options 898dae2e, golden).
# source sha256 9527b7c13079dcfcb33fa91e13dbb04d8c497aac22ab7393973c68ddbde7b49d
# record sha256 0ee4f7c26fdf1ef4a2515dad3f463332da5aaf7a782e61d1a35ff3cd46cb09c6
# body   sha256 4f77eadfeae1b59d84c58901c1061635a198b1b040cdd432399c3d22e84fa77d
"""Net: ids -> scores.

Inputs:
    ids  int64[batch, length]

Outputs:
    scores  float32[batch, 4]

Weights (156 numbers) are next to this file, in
``model.safetensors``.

The file is yours to edit: burn-import overwrites it only while "body" above still
matches.
"""

from pathlib import Path
from typing import Self

import torch
from safetensors.torch import load_model
from torch import Tensor, nn

WEIGHTS = Path(__file__).with_name("model.safetensors")


class Net(nn.Module):
    def __init__(self, classes: int = 4) -> None:
        super().__init__()
        self.tokens = nn.Embedding(11, 6)
        self.norm = nn.LayerNorm(6, eps=1e-12)
        self.head = nn.Linear(6, classes, bias=False)
        self.positions = Positions()

    @classmethod
    def load(cls, weights: str | Path = WEIGHTS) -> Self:
        """Return the model with its trained weights, on the CPU and in eval mode."""
        model = cls()
        load_model(model, weights)
        return model.eval()

    def forward(self, ids: Tensor) -> Tensor:
        length = ids.shape[1]
        picked = self.norm(self.tokens(ids) + self.positions.weight[:length])[:, -1]
        return self.head(picked)


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(9, 6))
