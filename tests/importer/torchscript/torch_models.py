"""Typical PyTorch models, created only by the opt-in tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


class Residual(nn.Module):
    """A residual block of two convolutions, as in ResNet."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.downsample = (
            None
            if stride == 1
            else nn.Sequential(
                nn.Conv2d(inside, outside, 1, stride, bias=False),
                nn.BatchNorm2d(outside),
            )
        )

    def forward(self, x: Tensor) -> Tensor:
        beside = x if self.downsample is None else self.downsample(x)
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.bn2(self.conv2(x))
        x += beside
        return self.relu(x)


class ResNet(nn.Module):
    """A small ResNet."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(Residual(8, 8, 1), Residual(8, 8, 1))
        self.layer2 = nn.Sequential(Residual(8, 16, 2), Residual(16, 16, 1))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer2(self.layer1(x))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class Inverted(nn.Module):
    """An inverted residual block with squeeze and excitation, as in MobileNetV3."""

    def __init__(self, channels: int, wide: int) -> None:
        super().__init__()
        self.expand = nn.Sequential(
            nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6()
        )
        self.depthwise = nn.Conv2d(wide, wide, 3, 1, 1, groups=wide)
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(wide, 4, 1),
            nn.ReLU(),
            nn.Conv2d(4, wide, 1),
            nn.Hardsigmoid(),
        )
        self.project = nn.Conv2d(wide, channels, 1)
        self.act = nn.Hardswish(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.act(self.depthwise(self.expand(x)))
        return x + self.project(y * self.squeeze(y))


class Dense(nn.Module):
    """Layers that read all earlier outputs, as in DenseNet, and a channel shuffle."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Conv2d(4 * n, 4, 3, padding=1) for n in (1, 2, 3)
        )
        self.norm = nn.GroupNorm(4, 16)

    def forward(self, x: Tensor) -> Tensor:
        results = [x]
        for layer in self.layers:
            results.append(F.elu(layer(torch.cat(results, 1))))
        x = self.norm(torch.cat(results, 1))
        batch, channels, height, width = x.shape
        x = x.view(batch, 2, channels // 2, height, width).transpose(1, 2)
        return x.reshape(batch, channels, height, width)


class UNet(nn.Module):
    """An encoder and a decoder with skip connections."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(2, 6, 3, padding=1)
        self.bottom = nn.Conv2d(6, 6, 3, padding=1)
        self.up = nn.ConvTranspose2d(6, 4, 2, 2)
        self.last = nn.Conv2d(10, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        wide = F.leaky_relu(self.down(x), 0.1)
        deep = F.silu(self.bottom(F.avg_pool2d(wide, 2)))
        return torch.sigmoid(self.last(torch.cat([wide, self.up(deep)], dim=1)))


class Resized(nn.Module):
    """Padding and resizing."""

    def forward(self, x: Tensor) -> Tensor:
        x = F.pad(x, [1, 2, 0, 1], mode="reflect")
        small = F.interpolate(x, scale_factor=2.0, mode="nearest")
        return F.interpolate(small, size=[9, 7], mode="bilinear", align_corners=False)


class Attention(nn.Module):
    """Hand-written attention with a packed projection."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(12, 36)
        self.proj = nn.Linear(12, 12)

    def forward(self, x: Tensor) -> Tensor:
        b, n, c = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, 3, c // 3).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        scores = (q @ k.transpose(-2, -1)) * (c // 3) ** -0.5
        mask = torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)
        scores = scores.masked_fill(mask, float("-inf")).softmax(dim=-1)
        return self.proj((scores @ v).transpose(1, 2).reshape(b, n, c))


class ViT(nn.Module):
    """Patches, a class token, and blocks of attention."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 12, 4, 4)
        self.cls_token = nn.Parameter(torch.randn(1, 1, 12))
        self.pos_embed = nn.Parameter(torch.randn(1, 17, 12))
        self.norm = nn.LayerNorm(12)
        self.blocks = nn.Sequential(Attention(), nn.GELU(), Attention())
        self.head = nn.Linear(12, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], dim=1)
        x = self.blocks(self.norm(x + self.pos_embed))
        return self.head(x[:, 0])


class Recurrent(nn.Module):
    """Embedded words and two kinds of recurrent layers."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 6)
        self.lstm = nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(10, 4, batch_first=True)
        self.last = nn.Linear(4, 2)

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        x, (hidden, _) = self.lstm(self.words(ids))
        x, _ = self.gru(x)
        return self.last(x[:, -1]), hidden


class Encoder(nn.Module):
    """PyTorch's own encoder layers, and attention with its weights."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.encoder(x)
        y, weights = self.attention(x, x, x)
        assert weights is not None
        return y, weights


class Indexed(nn.Module):
    """Slices, in-place changes of a copy, and gathers."""

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        y = x.clone()
        y.mul_(2).clamp_(min=-1)
        best, places = x.max(dim=1)
        top = x.topk(2, dim=-1)[0]
        first, rest = x.split([1, x.size(1) - 1], dim=1)
        return {
            "y": y[:, ::2] + first,
            "best": torch.stack([best, best.cumsum(0)]),
            "places": places,
            "top": top * rest.mean(),
            "where": torch.where(x > 0, x, torch.zeros_like(x)).std(dim=1),
        }


Inputs = Callable[[int], tuple[Any, ...]]


def image(channels: int, height: int, width: int) -> Inputs:
    """Return batches of images."""
    return lambda batch: (torch.randn(batch, channels, height, width),)


def rows(length: int, width: int) -> Inputs:
    """Return batches of vectors."""
    return lambda batch: (torch.randn(batch, length, width),)


MODELS: dict[str, tuple[Callable[[], nn.Module], Inputs]] = {
    "resnet": (ResNet, image(3, 32, 40)),
    "inverted": (lambda: Inverted(6, 12), image(6, 8, 9)),
    "dense": (Dense, image(4, 6, 7)),
    "unet": (UNet, image(2, 8, 12)),
    "resized": (Resized, image(2, 5, 6)),
    "attention": (Attention, rows(7, 12)),
    "vit": (ViT, image(3, 16, 16)),
    "recurrent": (Recurrent, lambda batch: (torch.randint(0, 20, (batch, 7)),)),
    "encoder": (Encoder, rows(5, 8)),
    "indexed": (Indexed, rows(4, 6)),
}
