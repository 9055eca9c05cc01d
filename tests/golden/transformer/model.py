# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 f275a1f5693f6aa59eb8fb5749b4ecb4eb3a758f46485f12c5f6b44e4db17c71
# body   sha256 d52d81682ebccbaccdc934c41ff868c42b204d50a5a2c7ac34406bfa02253ea7
"""Net: x -> encoded.

Inputs:
    x  float32[batch, length, 8]

Outputs:
    encoded  float32[batch, length, 8]

Weights (1 080 numbers) are in ``model.safetensors``, next to this file. The
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
        self.encoder = Encoder()

    @classmethod
    def load(
        cls, weights: str | Path = WEIGHTS, backend: burn.Backend | None = None
    ) -> Self:
        """Return the model with its trained weights, on ``backend`` (the CPU)."""
        return cls().load_weights(weights, backend)

    def __call__(self, x: Tensor) -> Tensor:
        return self.encoder(x)


class Encoder(nn.Module):
    """``encoder``: [batch, length, 8] -> same."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleTuple(Layers(), Layers2())
        self.norm = nn.LayerNorm(8)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.layers[0](x)
        x = x + self.layers[1].attention(self.layers[1].norm1(x))
        return self.norm(x + self.layers[1].mlp(self.layers[1].norm2(x)))


class Layers2(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(8)
        self.attention = LayersAttention()
        self.norm2 = nn.LayerNorm(8)
        self.mlp = Mlp()


class Layers(nn.Module):
    """``encoder.layers.0``: [batch, length, 8] -> same."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(8)
        self.attention = Attention()
        self.norm2 = nn.LayerNorm(8)
        self.mlp = Mlp()

    def __call__(self, x: Tensor) -> Tensor:
        x = self.attention(self.norm1(x), x)
        return x + self.mlp(self.norm2(x))


class Attention(nn.Module):
    """``encoder.layers.0.attention``: [batch, length, 8] -> same."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(8, 8)
        self.key = nn.Linear(8, 8)
        self.value = nn.Linear(8, 8)
        self.output = nn.Linear(8, 8)

    def __call__(self, x: Tensor, x2: Tensor) -> Tensor:
        batch, length = x.shape[:2]
        # [batch, 2, length, 4]
        heads = self.query(x).reshape(batch, length, 2, 4).transpose(1, 2)
        # [batch, 2, 4, length]
        heads2 = self.key(x).reshape(batch, length, 2, 4).permute(0, 2, 3, 1)
        # [batch, 2, length, 4]
        x = self.value(x).reshape(batch, length, 2, 4).transpose(1, 2)
        # [batch, length, 2, 4]
        together = (ops.softmax(heads @ heads2 * 0.5) @ x).transpose(1, 2)
        return x2 + self.output(together.reshape(batch, length, 8))


class Mlp(nn.Module):
    """``encoder.layers.0.mlp`` and 1 more: [batch, length, 8] -> same."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(8, 12)
        self.down = nn.Linear(12, 8)

    def __call__(self, x: Tensor) -> Tensor:
        return self.down(ops.tanh(self.up(x)))


class LayersAttention(nn.Module):
    """``encoder.layers.1.attention``: [batch, length, 8] -> same."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(8, 8)
        self.key = nn.Linear(8, 8)
        self.value = nn.Linear(8, 8)
        self.output = nn.Linear(8, 8)

    def __call__(self, x: Tensor) -> Tensor:
        batch, length = x.shape[:2]
        # [batch, 2, length, 4]
        heads = self.query(x).reshape(batch, length, 2, 4).transpose(1, 2)
        # [batch, 2, 4, length]
        heads2 = self.key(x).reshape(batch, length, 2, 4).permute(0, 2, 3, 1)
        # [batch, 2, length, 4]
        x = self.value(x).reshape(batch, length, 2, 4).transpose(1, 2)
        # [batch, length, 2, 4]
        together = (ops.softmax(heads @ heads2 * 0.5) @ x).transpose(1, 2)
        return self.output(together.reshape(batch, length, 8))
