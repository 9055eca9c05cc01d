"""Layers by hand: filters, splines, sorting, norms, complex numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations

from tests.wild.research.inputs import Program, free_sequences, pictures, vectors


class DynamicFilter(nn.Module):
    """A convolution whose kernels are computed from each image, in groups."""

    def __init__(self) -> None:
        super().__init__()
        self.filters = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 3 * 9)
        )
        self.mix = nn.Conv2d(3, 5, 1)

    def forward(self, x: Any) -> Any:
        batch, channels, high, wide = x.shape
        kernels = self.filters(x).view(batch * channels, 1, 3, 3)
        kernels = kernels.flatten(2).softmax(-1).view_as(kernels)
        rows = x.reshape(1, batch * channels, high, wide)
        y = functional.conv2d(rows, kernels, padding=1, groups=batch * channels)
        return self.mix(y.view(batch, channels, high, wide))


class Involution(nn.Module):
    """Involution: a kernel for each place, shared by the channels of a group."""

    def __init__(self, groups: int = 2):
        super().__init__()
        self.groups = groups
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.reduce = nn.Conv2d(4, 2, 1)
        self.span = nn.Conv2d(2, 9 * groups, 1)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        b, c, h, w = x.shape
        kernel = self.span(self.reduce(x).relu()).view(b, self.groups, 1, 9, h, w)
        patches = functional.unfold(x, 3, padding=1)
        patches = patches.view(b, self.groups, c // self.groups, 9, h, w)
        return (kernel * patches).sum(3).view(b, c, h, w)


class OffsetSampling(nn.Module):
    """Deformable sampling: a grid moved by learned offsets, weighted and summed."""

    def __init__(self, points: int = 3):
        super().__init__()
        self.points = points
        self.offset = nn.Conv2d(3, 2 * points, 3, padding=1)
        self.weight = nn.Conv2d(3, points, 1)
        self.value = nn.Conv2d(3, 4, 1)

    def forward(self, x: Any) -> Any:
        b, _, h, w = x.shape
        ys, xs = torch.meshgrid(
            torch.linspace(-1, 1, h), torch.linspace(-1, 1, w), indexing="ij"
        )
        base = torch.stack((xs, ys), -1)[None]
        offsets = self.offset(x).tanh().view(b, self.points, 2, h, w) * (2 / w)
        weights, values = self.weight(x).softmax(1), self.value(x)
        total = torch.zeros_like(values)
        for k in range(self.points):
            grid = base + offsets[:, k].permute(0, 2, 3, 1)
            moved = functional.grid_sample(
                values, grid, mode="bilinear", padding_mode="zeros", align_corners=True
            )
            total += moved * weights[:, k : k + 1]
        return total


class SplineLayer(nn.Module):
    """Cubic B-splines by the recursion of Cox and de Boor, as in KANs."""

    def __init__(self, width: int = 6, out: int = 4, order: int = 3):
        super().__init__()
        self.order = order
        knots = torch.arange(-order, 5 + order + 1) * 0.4 - 1
        self.register_buffer("grid", knots.expand(width, -1).contiguous())
        self.coefficients = nn.Parameter(torch.randn(out, width, 5 + order) * 0.1)
        self.base = nn.Parameter(torch.randn(out, width) * 0.3)

    def forward(self, x: Any) -> Any:
        y, grid = x.unsqueeze(-1), self.grid
        bases = ((y >= grid[:, :-1]) & (y < grid[:, 1:])).to(x.dtype)
        for k in range(1, self.order + 1):
            left = (y - grid[:, : -(k + 1)]) / (grid[:, k:-1] - grid[:, : -(k + 1)])
            right = (grid[:, k + 1 :] - y) / (grid[:, k + 1 :] - grid[:, 1:(-k)])
            bases = left * bases[:, :, :-1] + right * bases[:, :, 1:]
        spline = functional.linear(bases.flatten(1), self.coefficients.flatten(1))
        return functional.linear(functional.silu(x), self.base) + spline


class SoftSort(nn.Module):
    """SoftSort: a row of softmax for each rank; the hard order with soft gradients."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.score = nn.Linear(width, width)
        self.temperature = nn.Parameter(torch.tensor(0.5))

    def forward(self, x: Any) -> Any:
        scores = self.score(x)
        ordered, order = scores.sort(-1, descending=True)
        distance = (ordered.unsqueeze(-1) - scores.unsqueeze(-2)).abs().neg()
        soft = (distance / self.temperature).softmax(-1)
        hard = torch.zeros_like(soft).scatter(-1, order.unsqueeze(-1), 1.0)
        permutation = hard + soft - soft.detach()
        return (permutation @ x.unsqueeze(-1)).squeeze(-1), order.argsort(-1)


class ComplexLayer(nn.Module):
    """Linear layers with complex weights, modReLU, and amplitude and phase."""

    def __init__(self, width: int = 6):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, 5, dtype=torch.cfloat) * 0.4)
        self.bias = nn.Parameter(torch.randn(5, dtype=torch.cfloat) * 0.1)
        self.shift = nn.Parameter(torch.full((5,), -0.05))

    def forward(self, x: Any) -> Any:
        z = torch.fft.fft(x, dim=-1, norm="ortho") @ self.weight + self.bias
        size = z.abs()
        z = z * (torch.relu(size + self.shift) / (size + 1e-6))
        return torch.cat([z.real, z.imag], -1), (z * z.conj()).real.sum(-1)


class Reparametrised(nn.Module):
    """Weight norm on convolutions, spectral norm by old hooks, cosine classifiers."""

    def __init__(self) -> None:
        super().__init__()
        self.a = parametrizations.weight_norm(nn.Conv2d(3, 4, 3, padding=1), dim=0)
        self.b = nn.utils.spectral_norm(nn.Conv2d(4, 4, 3, groups=2))
        self.classes = nn.Parameter(torch.randn(5, 4))
        self.scale = nn.Parameter(torch.tensor(math.log(10.0)))

    def forward(self, x: Any) -> Any:
        y = functional.elu(self.b(functional.celu(self.a(x), alpha=0.7)))
        features = functional.normalize(y.mean((2, 3)), dim=-1)
        cosine = features @ functional.normalize(self.classes, dim=-1).T
        return cosine * self.scale.exp().clamp(max=100)


class TensorTrain(nn.Module):
    """A linear layer whose matrix is a train of three cores."""

    def __init__(self) -> None:
        super().__init__()
        self.cores = nn.ParameterList(
            torch.randn(a, 2, 3, b) * 0.5 for a, b in ((1, 4), (4, 4), (4, 1))
        )
        self.bias = nn.Parameter(torch.zeros(27))

    def forward(self, x: Any) -> Any:
        state = x.view(-1, 1, 2, 2, 2, 1).movedim(-1, 1).squeeze(2)
        y = torch.einsum("brijk,ruvs->bujkvs", state, self.cores[0].flip(0))
        y = torch.einsum("bujkvs,sjwt->bukvwt", y, self.cores[1])
        y = torch.einsum("bukvwt,tkzo->buvwzo", y, self.cores[2])
        return y.sum(1).flatten(1) + self.bias


class WaveletPyramid(nn.Module):
    """A learned lifting scheme: even and odd samples, predicted and updated."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.predict = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.update = nn.ModuleList(nn.Linear(width, width) for _ in range(2))

    def forward(self, x: Any) -> Any:
        details = []
        for predict, update in zip(self.predict, self.update, strict=True):
            if x.shape[1] % 2:
                x = torch.cat([x, x[:, -1:]], 1)
            even, odd = x[:, 0::2], x[:, 1::2]
            odd = odd - torch.tanh(predict(even))
            x = even + update(odd).div(2)
            details.append(odd.abs().mean(1))
        return x.mean(1), *details


class GatedUnit(nn.Module):
    """Gated convolutions with context, squeeze and excitation, and stochastic depth."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=2, dilation=2, bias=False)
        self.norm = nn.GroupNorm(2, 8)
        self.gate = nn.Parameter(torch.zeros(1, 4, 1, 1))
        self.pool = nn.AdaptiveMaxPool2d((2, 2))
        self.fc = nn.LazyLinear(4)
        self.fc(torch.zeros(1, 16))

    def forward(self, x: Any) -> Any:
        a, b = self.norm(self.conv(x)).chunk(2, dim=1)
        y = torch.tanh(a) * torch.sigmoid(b + self.gate)
        s = self.fc(self.pool(y).flatten(1))[..., None, None]
        y = functional.glu(torch.cat([y, s.expand_as(y)], 1), dim=1)
        y = functional.leaky_relu(y, 0.1, inplace=True)
        return functional.avg_pool2d(y, 3, 2, ceil_mode=True, count_include_pad=False)


class StraightThrough(nn.Module):
    """Binary weights and rounded activations, with gradients of a clipped identity."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, width))
        self.step = nn.Parameter(torch.tensor(0.2))

    def forward(self, x: Any) -> Any:
        scale = self.weight.abs().mean(1, keepdim=True)
        binary = scale * self.weight.sign()
        clipped = self.weight.clamp(-1, 1)
        weight = (binary - clipped).detach() + clipped
        y = functional.linear(x, weight) / self.step
        rounded = y + (y.round() - y).detach()
        return rounded.clamp(-8, 7) * self.step


class NeuralCde(nn.Module):
    """A neural CDE by Heun steps along the increments of a path."""

    def __init__(self, width: int = 8, hidden: int = 4):
        super().__init__()
        self.width, self.hidden = width, hidden
        self.start = nn.Linear(width, hidden)
        self.field = nn.Sequential(nn.Linear(hidden, 16), nn.SiLU(), nn.Linear(16, hidden * width), nn.Tanh())  # fmt: skip  # noqa: E501

    def slope(self, z: Any, dx: Any) -> Any:
        matrix = self.field(z).view(*z.shape[:-1], self.hidden, self.width)
        return torch.matmul(matrix, dx.unsqueeze(-1)).squeeze(-1)

    def forward(self, x: Any) -> Any:
        z, path = self.start(x[:, 0]), []
        for dx in torch.diff(x[:, :6], dim=1).unbind(1):
            first = self.slope(z, dx)
            z = z + 0.5 * (first + self.slope(z + first, dx))
            path.append(z)
        return torch.stack(path, dim=1), torch.trapezoid(torch.stack(path, -1), dx=0.5)


def _of_vectors(kind: type[nn.Module], *widths: int) -> Callable[[], Program]:
    return lambda: (kind(), *vectors(*widths))


def _of_pictures(kind: type[nn.Module]) -> Callable[[], Program]:
    return lambda: (kind(), *pictures())


def _of_sequences(kind: type[nn.Module]) -> Callable[[], Program]:
    return lambda: (kind(), *free_sequences())


PROGRAMS: dict[str, Callable[[], Program]] = {
    "dynamic_filter": _of_pictures(DynamicFilter),
    "involution": _of_pictures(Involution),
    "offset_sampling": _of_pictures(OffsetSampling),
    "spline_layer": _of_vectors(SplineLayer, 6),
    "soft_sort": _of_vectors(SoftSort, 8),
    "complex_layer": _of_vectors(ComplexLayer, 6),
    "reparametrised": _of_pictures(Reparametrised),
    "tensor_train": _of_vectors(TensorTrain, 8),
    "lifting": _of_sequences(WaveletPyramid),
    "gated_unit": _of_pictures(GatedUnit),
    "binary_weights": _of_vectors(StraightThrough, 8),
    "neural_cde": _of_sequences(NeuralCde),
}
