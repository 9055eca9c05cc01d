# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 1722da0f6a003fa7ea06ed2caad8e0902b580b1a19b20747bbc4cb037d5eec26
# record sha256 86abb5c1d55020ba8e635403041b5e8933a67ad4250574fc7fd0cd825997dd11
# body   sha256 6411d1bbd5a17e5be924eceae895e44de59d06c32174f535099b19390b418efb
"""Net: x -> encoded.

Outputs:
    encoded  float32[batch, length, 8]

Weights (1 080 numbers) are next to this file, in
``model.safetensors``.

The file is yours to edit: burn-import overwrites it only while "body" above still
matches.
"""

from pathlib import Path

import burn
from burn import Tensor, nn, ops

burn.require_version("0.1.0")


class Net(nn.Module):
    record_prefix = "encoder"
    WEIGHTS = Path(__file__).with_name("model.safetensors")

    def __init__(self, layers: int = 2) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.norm = nn.LayerNorm(8)

    @nn.check_inputs(x="float32[batch, length, 8]")
    def __call__(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Layer(nn.Module):
    """``layers.0`` and 1 more: [batch, length, 8] -> same."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(8)
        self.attention = Attention()
        self.norm2 = nn.LayerNorm(8)
        self.mlp = Mlp()

    def __call__(self, x: Tensor) -> Tensor:
        residual = x + self.attention(self.norm1(x))
        return residual + self.mlp(self.norm2(residual))


class Attention(nn.Module):
    """``layers.0.attention`` and 1 more: [batch, length, 8] -> same."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(8, 8)
        self.key = nn.Linear(8, 8)
        self.value = nn.Linear(8, 8)
        self.output = nn.Linear(8, 8)

    def __call__(self, x: Tensor) -> Tensor:
        batch, length = x.shape[:2]
        query = self.query(x).reshape(batch, length, 2, 4).transpose(1, 2)
        key = self.key(x).reshape(batch, length, 2, 4).transpose(1, 2)
        value = self.value(x).reshape(batch, length, 2, 4).transpose(1, 2)
        return self.output(ops.attention(query, key, value).transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    """``layers.0.mlp`` and 1 more: [batch, length, 8] -> same."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(8, 12)
        self.down = nn.Linear(12, 8)

    def __call__(self, x: Tensor) -> Tensor:
        return self.down(ops.tanh(self.up(x)))
