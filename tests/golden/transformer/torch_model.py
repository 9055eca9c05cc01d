# Imported by burn-import 0 from model.onnx (opset 18, options 898dae2e, golden).
# source sha256 1722da0f6a003fa7ea06ed2caad8e0902b580b1a19b20747bbc4cb037d5eec26
# record sha256 86abb5c1d55020ba8e635403041b5e8933a67ad4250574fc7fd0cd825997dd11
# body   sha256 aae7c846eb4e368434ee01e663090d91f3b9a91c9d732a8b8a1449cd18c8a748
"""Net: x -> encoded.

Inputs:
    x  float32[batch, length, 8]

Outputs:
    encoded  float32[batch, length, 8]

Weights (1 080 numbers) are next to this file, in
``model.safetensors``.

The file is yours to edit: burn-import overwrites it only while "body" above still
matches.
"""

from pathlib import Path
from typing import Self

import torch
import torch.nn.functional as F
from safetensors.torch import load_model
from torch import Tensor, nn

WEIGHTS = Path(__file__).with_name("model.safetensors")


class Net(nn.Module):
    def __init__(self, layers: int = 2) -> None:
        super().__init__()
        self.encoder = Encoder(layers)

    @classmethod
    def load(cls, weights: str | Path = WEIGHTS) -> Self:
        """Return the model with its trained weights, on the CPU and in eval mode."""
        model = cls()
        load_model(model, weights)
        return model.eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.encoder(x)


class Encoder(nn.Module):
    """``encoder``: [batch, length, 8] -> same."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.norm = nn.LayerNorm(8)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Layer(nn.Module):
    """``encoder.layers.0`` and 1 more: [batch, length, 8] -> same."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(8)
        self.attention = Attention()
        self.norm2 = nn.LayerNorm(8)
        self.mlp = Mlp()

    def forward(self, x: Tensor) -> Tensor:
        residual = x + self.attention(self.norm1(x))
        return residual + self.mlp(self.norm2(residual))


class Attention(nn.Module):
    """``encoder.layers.0.attention`` and 1 more: [batch, length, 8] -> same."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(8, 8)
        self.key = nn.Linear(8, 8)
        self.value = nn.Linear(8, 8)
        self.output = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        batch, length = x.shape[:2]
        query = self.query(x).reshape(batch, length, 2, 4).transpose(1, 2)
        key = self.key(x).reshape(batch, length, 2, 4).transpose(1, 2)
        value = self.value(x).reshape(batch, length, 2, 4).transpose(1, 2)
        x = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        return self.output(x)


class Mlp(nn.Module):
    """``encoder.layers.0.mlp`` and 1 more: [batch, length, 8] -> same."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(8, 12)
        self.down = nn.Linear(12, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(torch.tanh(self.up(x)))
