# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 b0cc5b8aacc627ed4d8a541a278d1aaa0f9daf0e1b7c4b511a0d56df3fbd7685
# body   sha256 f1523618af33c35c7c465a49e5840beebb3e9454f3f6f7b840b684996f433a16
"""Net: image -> logits.

Inputs:
    image  float32[batch, 3, 9, 10]

Outputs:
    logits  float32[batch, 5]

Weights (2 725 numbers) are in ``model.safetensors``, next to this file. The
file is yours to edit: burn-import overwrites it only while "body" above still matches.
"""

from pathlib import Path
from typing import Self

import burn
from burn import Tensor, nn, ops

WEIGHTS = Path(__file__).with_name("model.safetensors")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = Stem()
        self.layers = nn.ModuleList(Layers() for _ in range(2))
        self.head = nn.Linear(8, 5)

    @classmethod
    def load(
        cls, weights: str | Path = WEIGHTS, backend: burn.Backend | None = None
    ) -> Self:
        """Return the model with its trained weights, on ``backend`` (the CPU)."""
        return cls().load_weights(weights, backend)

    def __call__(self, image: Tensor) -> Tensor:
        x = self.stem(image)  # [batch, 8, 5, 5]
        x = ops.relu(self.layers[0](x) + x)
        # [batch, 8, 1, 1]
        x = ops.relu(self.layers[1](x) + x).mean((2, 3), keepdims=True)
        return self.head(x.flatten(1))


class Stem(nn.Module):
    """``stem``: [batch, 3, 9, 10] -> [batch, 8, 5, 5]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, kernel_size=3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)

    def __call__(self, x: Tensor) -> Tensor:
        return ops.relu(self.norm(self.conv(x)))


class Layers(nn.Module):
    """``layers.0`` and 1 more: [batch, 8, 5, 5] -> same."""

    def __init__(self) -> None:
        super().__init__()
        self.first = First()
        self.second = Second()

    def __call__(self, x: Tensor) -> Tensor:
        return self.second(self.first(x))


class First(nn.Module):
    """``layers.0.first`` and 1 more: [batch, 8, 5, 5] -> same."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 8, kernel_size=3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)

    def __call__(self, x: Tensor) -> Tensor:
        return ops.relu(self.norm(self.conv(x)))


class Second(nn.Module):
    """``layers.0.second`` and 1 more: [batch, 8, 5, 5] -> same."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 8, kernel_size=3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)

    def __call__(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x))
