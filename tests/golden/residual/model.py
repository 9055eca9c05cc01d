# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 cdfeb9580d68e81f0b1c9bab4240d27804e6d93c634eb121ecd935c4d82e2579
# record sha256 0c9baa19aa2f65cbf8bcce06f64ecca33923f932ed6dc6bf86f29b4c67170970
# body   sha256 ec86b5d4dea252f2533ee21e5c079235422817ff30b84fc7c7809404d4bd586f
"""Net: image -> logits.

Outputs:
    logits  float32[batch, 5]

Weights (2 725 numbers) are next to this file, in
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

    def __init__(self, layers: int = 2, classes: int = 5) -> None:
        super().__init__()
        self.stem = Stem()
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.head = nn.Linear(8, classes)

    @nn.check_inputs(image="float32[batch, 3, 9, 10]")
    def __call__(self, image: Tensor) -> Tensor:
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

    def __call__(self, image: Tensor) -> Tensor:
        return ops.relu(self.norm(self.conv(image)))


class Layer(nn.Module):
    """``layers.0`` and 1 more: [batch, 8, 5, 5] -> same."""

    def __init__(self) -> None:
        super().__init__()
        self.first = First()
        self.second = Second()

    def __call__(self, x: Tensor) -> Tensor:
        return ops.relu(self.second(self.first(x)) + x)


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
