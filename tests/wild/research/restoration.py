"""Images made from images: segmentation, upscaling, motion, critics."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import spectral_norm

from tests.wild.research.inputs import Program, pictures


class OddUNet(nn.Module):
    """A U-Net for any size: what was upsampled is padded to its skip."""

    def __init__(self) -> None:
        super().__init__()
        widths = (3, 8, 16, 16)
        pairs = list(zip(widths, widths[1:], strict=False))
        self.down = nn.ModuleList(self.double(a, b) for a, b in pairs)
        self.up = nn.ModuleList(
            [nn.ConvTranspose2d(16, 16, 2, 2), nn.ConvTranspose2d(8, 8, 2, stride=2)]
        )
        self.join = nn.ModuleList([self.double(32, 8), self.double(16, 8)])
        self.last = nn.Conv2d(8, 1, 1)

    @staticmethod
    def double(a: int, b: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        for c in (a, b):
            layers += [
                nn.Conv2d(c, b, 3, padding=1, bias=False),
                nn.InstanceNorm2d(b, affine=True),
                nn.LeakyReLU(0.1, inplace=True),
            ]
        return nn.Sequential(*layers)

    def forward(self, x: Any) -> Any:
        skips = []
        for k, block in enumerate(self.down):
            x = block(x if k == 0 else functional.max_pool2d(x, 2))
            skips.append(x)
        x = skips.pop()
        for up, join in zip(self.up, self.join, strict=True):
            skip, x = skips.pop(), up(x)
            dy, dx = skip.size(2) - x.size(2), skip.size(3) - x.size(3)
            x = functional.pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
            x = join(torch.cat([skip, x], dim=1))
        return torch.sigmoid(self.last(x))


class DenseUpscaler(nn.Module):
    """ESRGAN: residual in residual dense blocks, then pixel shuffles."""

    def __init__(self, width: int = 8, growth: int = 4):
        super().__init__()
        self.first = nn.Conv2d(3, width, 3, 1, 1)
        self.blocks = nn.ModuleList(
            nn.ModuleList(
                nn.Conv2d(width + k * growth, width if k == 3 else growth, 3, 1, 1)
                for k in range(4)
            )
            for _ in range(2)
        )
        self.up = nn.Sequential(
            nn.Conv2d(width, 4 * width, 3, 1, 1), nn.PixelShuffle(2), nn.PReLU(width)
        )
        self.last = nn.Conv2d(width, 3, 3, 1, 1)

    def forward(self, x: Any) -> Any:
        y = trunk = self.first(x)
        for block in self.blocks:
            parts = [y]
            for k, layer in enumerate(block):
                z = layer(torch.cat(parts, 1))
                parts.append(z if k == 3 else functional.leaky_relu(z, 0.2))
            y = y + parts[-1] * 0.2
        y = self.up(functional.interpolate(y + trunk, scale_factor=2, mode="nearest"))
        base = functional.interpolate(
            x, scale_factor=4, mode="bicubic", align_corners=False
        )
        return (self.last(y) + base).clamp(0, 1)


class ConvolutionalLstm(nn.Module):
    """A convolutional LSTM over frames [batch, time, channel, height, width]."""

    def __init__(self, channels: int = 2, width: int = 4):
        super().__init__()
        self.width = width
        self.gates = nn.Conv2d(channels + width, 4 * width, 5, padding=2)
        self.peephole = nn.Parameter(torch.zeros(3, width, 1, 1))
        self.last = nn.Conv3d(width, 1, (3, 3, 3), padding=(1, 1, 1))

    def forward(self, x: Any) -> Any:
        b, t, _, h, w = x.shape
        state = x.new_zeros(b, self.width, h, w)
        cell = torch.zeros_like(state)
        states = []
        for step in range(t):
            gates = self.gates(torch.cat((x[:, step], state), dim=1))
            i, f, g, o = torch.split(gates, self.width, dim=1)
            i = torch.sigmoid(i + self.peephole[0] * cell)
            f = torch.sigmoid(f + self.peephole[1] * cell)
            cell = f * cell + i * torch.tanh(g)
            state = torch.sigmoid(o + self.peephole[2] * cell) * torch.tanh(cell)
            states.append(state)
        return self.last(torch.stack(states, dim=2)), (state, cell)


class PatchCritic(nn.Module):
    """A discriminator of patches with spectral norms and reflected borders."""

    def __init__(self) -> None:
        super().__init__()
        self.first = spectral_norm(nn.Conv2d(3, 8, 4, stride=2))
        self.second = spectral_norm(nn.Conv2d(8, 16, 4, stride=1, bias=False))
        self.last = spectral_norm(nn.Linear(16, 1))

    def forward(self, x: Any) -> Any:
        y = functional.leaky_relu(
            self.first(functional.pad(x, (1, 1, 1, 1), mode="reflect")), 0.2
        )
        y = self.second(functional.pad(y, (2, 1, 2, 1), mode="replicate"))
        y = functional.leaky_relu(functional.instance_norm(y), 0.2)
        spread = y.std(dim=0, unbiased=False).mean([1, 2])
        return self.last(y.sum((2, 3))).squeeze(1), spread


class FlowWarp(nn.Module):
    """PWC-Net: a cost volume of shifted features, flow from it, and a warped image."""

    def __init__(self, width: int = 8, reach: int = 2):
        super().__init__()
        self.reach = reach
        self.features = nn.Conv2d(3, width, 3, padding=1)
        self.flow = nn.Conv2d((2 * reach + 1) ** 2, 2, 3, padding=1)

    def warp(self, x: Any, flow: Any) -> Any:
        b, _, h, w = x.size()
        xs = (
            torch.arange(0, w)
            .view(1, -1)
            .repeat(h, 1)
            .view(1, 1, h, w)
            .repeat(b, 1, 1, 1)
        )
        ys = (
            torch.arange(0, h)
            .view(-1, 1)
            .repeat(1, w)
            .view(1, 1, h, w)
            .repeat(b, 1, 1, 1)
        )
        grid = torch.cat((xs, ys), 1).float() + flow
        grid_x = 2.0 * grid[:, 0] / max(w - 1, 1) - 1.0
        grid_y = 2.0 * grid[:, 1] / max(h - 1, 1) - 1.0
        grid = torch.stack((grid_x, grid_y), dim=3)
        inside = functional.grid_sample(torch.ones_like(x), grid, align_corners=True)
        return (
            functional.grid_sample(x, grid, align_corners=True)
            * (inside > 0.999).float()
        )

    def forward(self, a: Any, b: Any) -> Any:
        first, second = self.features(a), self.features(b)
        padded = functional.pad(second, [self.reach] * 4)
        h, w = first.shape[-2:]
        costs = [
            (first * padded[:, :, dy : dy + h, dx : dx + w]).mean(1, keepdim=True)
            for dy in range(2 * self.reach + 1)
            for dx in range(2 * self.reach + 1)
        ]
        flow = self.flow(functional.leaky_relu(torch.cat(costs, 1), 0.1))
        return flow, self.warp(b, flow)


def _odd() -> Program:
    return OddUNet(), (torch.randn(1, 3, 18, 22),), (torch.randn(2, 3, 25, 15),)


def _frames() -> Program:
    return (
        ConvolutionalLstm(),
        (torch.randn(2, 3, 2, 6, 6),),
        (torch.randn(3, 3, 2, 9, 7),),
    )


def _pair() -> Program:
    shapes = (2, 3, 10, 12), (1, 3, 13, 9)
    small, large = ((torch.randn(s), torch.randn(s)) for s in shapes)
    return FlowWarp(), small, large


def _any_size(kind: Any, *shapes: tuple[int, ...]) -> Any:
    def build() -> Program:
        small, large = ((torch.randn(shape),) for shape in shapes)
        return kind(), small, large

    return build


PROGRAMS = {
    "odd_unet": _odd,
    "dense_upscaler": _any_size(DenseUpscaler, (1, 3, 6, 8), (2, 3, 9, 5)),
    "convolutional_lstm": _frames,
    "patch_critic": lambda: (PatchCritic(), *pictures()),
    "flow_warp": _pair,
}
