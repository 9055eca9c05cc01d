# Imported by burn-import 0 from model.onnx (opset 18, options 898dae2e, golden).
# source sha256 cdfeb9580d68e81f0b1c9bab4240d27804e6d93c634eb121ecd935c4d82e2579
# record sha256 c9d0131a951c081b837b709e8269990f3a5da604c37db6ebcce7c01ed5112aa7
# body   sha256 9798f0702a2c60d4f0a5b229b53c051703c701611bbedcfb3f13bba5abd7181f
"""Net: image -> logits.

Inputs:
    image  float32[batch, 3, 9, 10]

Outputs:
    logits  float32[batch, 5]

Weights (2 730 numbers) are next to this file, in
``model.safetensors``.

The file is yours to edit: burn-import overwrites it only while "body" above still
matches.
"""

from pathlib import Path
from typing import Self

import torch.nn.functional as F
from safetensors.torch import load_model
from torch import Tensor, nn

WEIGHTS = Path(__file__).with_name("model.safetensors")


class Net(nn.Module):
    def __init__(self, layers: int = 2, classes: int = 5) -> None:
        super().__init__()
        self.stem = Stem()
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.head = nn.Linear(8, classes)

    @classmethod
    def load(cls, weights: str | Path = WEIGHTS) -> Self:
        """Return the model with its trained weights, on the CPU and in eval mode."""
        model = cls()
        load_model(model, weights)
        return model.eval()

    def forward(self, image: Tensor) -> Tensor:
        x = self.stem(image)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean((2, 3)))


class Stem(nn.Module):
    """``stem``: [batch, 3, 9, 10] -> [batch, 8, 5, 5]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, kernel_size=3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, image: Tensor) -> Tensor:
        return F.relu(self.norm(self.conv(image)))


class Layer(nn.Module):
    """``layers.0`` and 1 more: [batch, 8, 5, 5] -> same."""

    def __init__(self) -> None:
        super().__init__()
        self.first = First()
        self.second = Second()

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.second(self.first(x)) + x)


class First(nn.Module):
    """``layers.0.first`` and 1 more: [batch, 8, 5, 5] -> same."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 8, kernel_size=3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm(self.conv(x)))


class Second(nn.Module):
    """``layers.0.second`` and 1 more: [batch, 8, 5, 5] -> same."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 8, kernel_size=3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x))
