# Imported by burn-import 0 from model.onnx (opset 18, golden).
# source sha256 6ab3e9ef77c757acc5878814b4cfe2beb31f7047c7ac0a5e83ba5aecccfaa24d
# body   sha256 e2d4cedf6389a8891fccf2a04df4f02ba516403d44164f5e96f20c7158698106
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
        batch, length = x.shape[:2]
        x = self.layers[0](x)
        out = self.layers[1].norm1(x)
        # [batch, length, 2, 4]
        split = self.layers[1].attention.query(out).reshape(batch, length, 2, 4)
        # [batch, length, 2, 4]
        split2 = self.layers[1].attention.key(out).reshape(batch, length, 2, 4)
        # [batch, length, 2, 4]
        split3 = self.layers[1].attention.value(out).reshape(batch, length, 2, 4)
        # [batch, 2, length, length]
        scaled = split.transpose(1, 2) @ split2.permute(0, 2, 3, 1) * 0.5
        # [batch, length, 2, 4]
        together = (ops.softmax(scaled) @ split3.transpose(1, 2)).transpose(1, 2)
        # [batch, length, 8]
        sum_ = self.layers[1].attention.output(together.reshape(batch, length, 8))
        x = x + sum_
        # [batch, length, 12]
        tanh = ops.tanh(self.layers[1].mlp.up(self.layers[1].norm2(x)))
        return self.norm(x + self.layers[1].mlp.down(tanh))


class Attention2(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(8, 8)
        self.key = nn.Linear(8, 8)
        self.value = nn.Linear(8, 8)
        self.output = nn.Linear(8, 8)


class Mlp2(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(8, 12)
        self.down = nn.Linear(12, 8)


class Layers2(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(8)
        self.attention = Attention2()
        self.norm2 = nn.LayerNorm(8)
        self.mlp = Mlp2()


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
    """``encoder.layers.0.mlp``: [batch, length, 8] -> same."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(8, 12)
        self.down = nn.Linear(12, 8)

    def __call__(self, x: Tensor) -> Tensor:
        return self.down(ops.tanh(self.up(x)))
