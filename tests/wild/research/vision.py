"""Models of images and points: detection, capsules, fields, reconstruction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tests.wild.research.inputs import Program, pictures, vectors


class Capsules(nn.Module):
    """Capsules with dynamic routing in three rounds."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 5, stride=4)
        self.votes = nn.Parameter(torch.randn(36, 5, 6, 4) * 0.3)

    @staticmethod
    def squash(x: Any) -> Any:
        square = (x**2).sum(-1, keepdim=True)
        return square / (1 + square) * x / torch.sqrt(square + 1e-8)

    def forward(self, x: Any) -> Any:
        y = self.conv(x).view(x.shape[0], 4, 4, -1).permute(0, 1, 3, 2)
        lower = self.squash(y.reshape(x.shape[0], -1, 4))
        votes = torch.einsum("ncij,bnj->bnci", self.votes, lower)
        logits = torch.zeros_like(votes[..., 0])
        upper = votes.sum(1)
        for _ in range(3):
            upper = self.squash((logits.softmax(2).unsqueeze(-1) * votes).sum(1))
            logits = logits + (votes * upper.unsqueeze(1)).sum(-1)
        return upper.norm(dim=-1)


class SetDetector(nn.Module):
    """A detector like DETR: a backbone, a transformer, queries, boxes and classes."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(),
            nn.Conv2d(8, width, 3, 2, 1), nn.BatchNorm2d(width), nn.ReLU(),
        )  # fmt: skip
        self.transformer = nn.Transformer(
            width, 2, 1, 1, 32, dropout=0.0, batch_first=True
        )
        self.queries = nn.Parameter(torch.randn(5, width))
        self.rows = nn.Parameter(torch.randn(8, width // 2))
        self.columns = nn.Parameter(torch.randn(8, width // 2))
        self.classes, self.boxes = nn.Linear(width, 4), nn.Linear(width, 4)

    def forward(self, x: Any) -> tuple[Any, Any]:
        y = self.backbone(x)
        h, w = y.shape[-2:]
        index = torch.cat(
            [
                self.columns[:w].unsqueeze(0).expand(h, -1, -1),
                self.rows[:h].unsqueeze(1).expand(-1, w, -1),
            ],
            -1,
        ).flatten(0, 1)
        queries = self.queries.unsqueeze(0).expand(x.shape[0], -1, -1)
        y = self.transformer(y.flatten(2).transpose(1, 2) + index, queries)
        return self.classes(y), self.boxes(y).sigmoid()


class RadianceField(nn.Module):
    """A NeRF: encoded points through layers, composed along rays."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("bands", 2.0 ** torch.arange(4))
        self.layers = nn.ModuleList([nn.Linear(27, 16), nn.Linear(43, 16)])
        self.density, self.color = nn.Linear(16, 1), nn.Linear(16, 3)

    def encode(self, x: Any) -> Any:
        turned = (x.unsqueeze(-1) * self.bands).flatten(-2)
        return torch.cat([x, turned.sin(), turned.cos()], -1)

    def forward(self, origin: Any, direction: Any) -> tuple[Any, Any]:
        depths = torch.linspace(1.0, 3.0, 6)
        points = origin.unsqueeze(1) + direction.unsqueeze(1) * depths[:, None]
        encoded = self.encode(points)
        y = torch.relu(self.layers[0](encoded))
        y = torch.relu(self.layers[1](torch.cat([y, encoded], -1)))
        alpha = 1 - torch.exp(-functional.softplus(self.density(y)) * 0.4)
        passed = torch.cumprod(1 - alpha + 1e-10, 1)
        before = torch.cat([torch.ones_like(passed[:, :1]), passed[:, :-1]], 1)
        weight = alpha * before
        return (weight * self.color(y).sigmoid()).sum(1), (
            weight * depths[:, None]
        ).sum(1)


class QuantizedCoder(nn.Module):
    """A VQ-VAE with the straight-through gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(
            nn.Conv2d(3, 8, 4, 2, 1), nn.ReLU(), nn.Conv2d(8, 4, 4, 2, 1)
        )
        self.codes = nn.Embedding(10, 4)
        self.decode = nn.Sequential(
            nn.ConvTranspose2d(4, 8, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(8, 3, 4, 2, 1),
        )

    def forward(self, x: Any) -> tuple[Any, Any]:
        z = self.encode(x).permute(0, 2, 3, 1)
        flat = z.reshape(-1, 4)
        table = self.codes.weight
        distance = (flat**2).sum(1, True) - 2 * flat @ table.t() + (table**2).sum(1)
        index = distance.argmin(1)
        quantized = self.codes(index).view_as(z)
        passed = z + (quantized - z).detach()
        return self.decode(passed.permute(0, 3, 1, 2)), index


class PointSets(nn.Module):
    """PointNet: shared layers over points, a learned alignment, the largest value."""

    def __init__(self) -> None:
        super().__init__()
        self.align = nn.Sequential(
            nn.Conv1d(3, 8, 1), nn.BatchNorm1d(8), nn.ReLU(), nn.AdaptiveMaxPool1d(1)
        )
        self.turn = nn.Linear(8, 9)
        self.points = nn.Sequential(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Linear(8, 4))

    def forward(self, x: Any) -> Any:
        turn = self.turn(self.align(x).flatten(1)).view(-1, 3, 3) + torch.eye(3)
        y = self.points(torch.bmm(turn, x))
        return self.head(y.amax(-1))


class SpatialTransformer(nn.Module):
    """A network that samples its input on a grid that it computes."""

    def __init__(self) -> None:
        super().__init__()
        self.locate = nn.Sequential(
            nn.Conv2d(3, 4, 5, 2), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 6)
        )
        self.head = nn.Conv2d(3, 4, 3)

    def forward(self, x: Any) -> Any:
        identity = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
        theta = 0.1 * self.locate(x).view(-1, 2, 3) + identity
        grid = functional.affine_grid(theta, list(x.shape), align_corners=False)
        return self.head(functional.grid_sample(x, grid, align_corners=False))


class CoordinateUNet(nn.Module):
    """A U-Net with coordinates as channels, upsampling and attention gates."""

    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2 = nn.Conv2d(5, 8, 3, 1, 1), nn.Conv2d(8, 16, 3, 2, 1)
        self.norm1, self.norm2 = nn.InstanceNorm2d(8, affine=True), nn.GroupNorm(4, 16)
        self.gate, self.up = nn.Conv2d(16, 8, 1), nn.Conv2d(24, 8, 3, 1, 1)
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x: Any) -> Any:
        h, w = x.shape[-2:]
        rows = torch.linspace(-1, 1, h).view(1, 1, h, 1).expand(x.shape[0], 1, h, w)
        columns = torch.linspace(-1, 1, w).view(1, 1, 1, w).expand(x.shape[0], 1, h, w)
        a = functional.mish(self.norm1(self.down1(torch.cat([x, rows, columns], 1))))
        b = functional.mish(self.norm2(self.down2(a)))
        up = functional.interpolate(b, scale_factor=2.0, mode="bilinear")
        gated = a * torch.sigmoid(self.gate(up))
        return self.head(functional.mish(self.up(torch.cat([gated, up], 1))))


class Mixer(nn.Module):
    """Layers over places and over channels in turn, on patches of an image."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.norm1, self.norm2 = nn.LayerNorm(16), nn.LayerNorm(16)
        self.places = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
        self.channels = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

    def forward(self, x: Any) -> Any:
        y = self.patches(x).flatten(2).transpose(1, 2)
        y = y + self.places(self.norm1(y).transpose(1, 2)).transpose(1, 2)
        return (y + self.channels(self.norm2(y))).mean(1)


class SuperResolution(nn.Module):
    """Residual blocks with channel attention and pixel shuffling."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, 8, 3, 1, 1)
        self.body = nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1), nn.PReLU(8))
        self.squeeze, self.excite = nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1)
        self.leave = nn.Conv2d(8, 12, 3, 1, 1)

    def forward(self, x: Any) -> Any:
        y = self.enter(x)
        z = self.body(y)
        share = functional.adaptive_avg_pool2d(z, 1)
        share = torch.sigmoid(self.excite(torch.relu(self.squeeze(share))))
        large = functional.interpolate(
            x, scale_factor=2.0, mode="bicubic", align_corners=False
        )
        return functional.pixel_shuffle(self.leave(y + z * share), 2) + large


class DynamicConvolution(nn.Module):
    """Convolutions whose kernels are mixed for each sample."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels = nn.Parameter(torch.randn(4, 6, 3, 3, 3) * 0.2)
        self.choose = nn.Linear(3, 4)

    def forward(self, x: Any) -> Any:
        share = self.choose(x.mean((2, 3))).softmax(-1)
        kernels = torch.einsum("bk,koihw->boihw", share, self.kernels)
        n, c, h, w = x.shape
        y = functional.conv2d(
            x.reshape(1, n * c, h, w), kernels.flatten(0, 1), padding=1, groups=n
        )
        return y.view(n, 6, h, w)


def _of_pictures(kind: type[nn.Module]) -> Callable[[], Program]:
    return lambda: (kind(), *pictures())


PROGRAMS: dict[str, Callable[[], Program]] = {
    "capsules": _of_pictures(Capsules),
    "detr": _of_pictures(SetDetector),
    "vq_vae": _of_pictures(QuantizedCoder),
    "spatial_transformer": _of_pictures(SpatialTransformer),
    "coordinate_unet": _of_pictures(CoordinateUNet),
    "mixer": _of_pictures(Mixer),
    "super_resolution": _of_pictures(SuperResolution),
    "dynamic_convolution": lambda: (DynamicConvolution(), pictures()[0], None),
    "nerf": lambda: (RadianceField(), *vectors(3, 3)),
    "pointnet": lambda: (
        PointSets(),
        (torch.randn(2, 3, 20),),
        (torch.randn(3, 3, 31),),
    ),
}
