"""Densities, energies, differential equations and functions on functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tests.wild.research.inputs import Program, vectors


class CouplingFlow(nn.Module):
    """A normalizing flow of affine couplings (RealNVP), with log densities."""

    def __init__(self) -> None:
        super().__init__()
        self.nets = nn.ModuleList(
            nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 6))
            for _ in range(4)
        )

    def forward(self, x: Any) -> tuple[Any, Any]:
        total = x.new_zeros(x.shape[0])
        for net in self.nets:
            kept, changed = x.chunk(2, -1)
            scale, shift = net(kept).chunk(2, -1)
            scale = torch.tanh(scale)
            x = torch.cat([changed * torch.exp(scale) + shift, kept], -1)
            total = total + scale.sum(-1)
        density = -0.5 * (x**2).sum(-1) - 3 * math.log(2 * math.pi)
        return x, density + total


class SplineFlow(nn.Module):
    """A monotone rational quadratic spline for each coordinate."""

    def __init__(self) -> None:
        super().__init__()
        self.widths = nn.Parameter(torch.randn(6, 5))
        self.heights = nn.Parameter(torch.randn(6, 5))
        self.slopes = nn.Parameter(torch.randn(6, 6))

    def forward(self, x: Any) -> Any:
        x = torch.sigmoid(x)
        knots = functional.pad(self.widths.softmax(-1).cumsum(-1), (1, 0))
        values = functional.pad(self.heights.softmax(-1).cumsum(-1), (1, 0))
        slopes = functional.softplus(self.slopes) + 1e-3
        index = (x.unsqueeze(-1) >= knots[:, :-1]).sum(-1, keepdim=True) - 1
        shape = (x.shape[0], -1, -1)

        def pick(table: Any, offset: int) -> Any:
            return table.expand(shape).gather(-1, index + offset).squeeze(-1)

        low, high = pick(knots, 0), pick(knots, 1)
        y0, y1 = pick(values, 0), pick(values, 1)
        d0, d1 = pick(slopes, 0), pick(slopes, 1)
        slope, t = (y1 - y0) / (high - low), (x - low) / (high - low)
        top = slope * t**2 + d0 * t * (1 - t)
        return y0 + (y1 - y0) * top / (slope + (d0 + d1 - 2 * slope) * t * (1 - t))


class MaskedAutoregression(nn.Module):
    """A masked autoencoder of densities (MADE)."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 15), nn.Linear(15, 12)
        degrees = torch.arange(15) % 5
        self.mask1: Any = nn.Buffer((degrees[:, None] >= torch.arange(6)).float())
        outputs = torch.arange(6).repeat(2)
        self.mask2: Any = nn.Buffer((outputs[:, None] > degrees).float())

    def forward(self, x: Any) -> Any:
        y = functional.linear(x, self.first.weight * self.mask1, self.first.bias)
        y = functional.linear(
            torch.relu(y), self.second.weight * self.mask2, self.second.bias
        )
        mean, logarithm = y.chunk(2, -1)
        return (x - mean) * torch.exp(-logarithm), -logarithm.sum(-1)


class NeuralEquation(nn.Module):
    """A neural differential equation by eight steps of Runge and Kutta."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 4))

    def slope(self, t: float, x: Any) -> Any:
        return self.net(torch.cat([x, torch.full_like(x[:, :1], t)], -1))

    def forward(self, x: Any) -> Any:
        step = 1 / 8
        for k in range(8):
            t = k * step
            a = self.slope(t, x)
            b = self.slope(t + step / 2, x + step / 2 * a)
            c = self.slope(t + step / 2, x + step / 2 * b)
            d = self.slope(t + step, x + step * c)
            x = x + step / 6 * (a + 2 * b + 2 * c + d)
        return x


class SplineLayer(nn.Module):
    """A layer of a Kolmogorov-Arnold network: B-splines on every edge."""

    def __init__(self, inputs: int, outputs: int, order: int = 3, grid: int = 5):
        super().__init__()
        steps = torch.arange(-order, grid + order + 1).float() * (2 / grid) - 1
        self.knots: Any = nn.Buffer(steps)
        self.order = order
        self.base = nn.Linear(inputs, outputs)
        self.spline = nn.Parameter(torch.randn(outputs, inputs, grid + order) * 0.1)

    def forward(self, x: Any) -> Any:
        t, x1 = self.knots, x.unsqueeze(-1)
        bases = ((x1 >= t[:-1]) & (x1 < t[1:])).to(x.dtype)
        for k in range(1, self.order + 1):
            left = (x1 - t[: -(k + 1)]) / (t[k:-1] - t[: -(k + 1)]) * bases[..., :-1]
            right = (t[k + 1 :] - x1) / (t[k + 1 :] - t[1:-k]) * bases[..., 1:]
            bases = left + right
        splines = torch.einsum("bik,oik->bo", bases, self.spline)
        return self.base(functional.silu(x)) + splines


class HyperNetwork(nn.Module):
    """A network whose weights another network computes from a context."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 4 * 5 + 5))

    def forward(self, x: Any, context: Any) -> Any:
        weights = self.net(context)
        matrix, bias = weights[:, :20].view(-1, 5, 4), weights[:, 20:]
        return torch.sin(
            30 * torch.baddbmm(bias.unsqueeze(-1), matrix, x.unsqueeze(-1))
        )


class HopfieldMemory(nn.Module):
    """A modern Hopfield network: patterns retrieved by three updates."""

    def __init__(self) -> None:
        super().__init__()
        self.patterns = nn.Parameter(torch.randn(10, 6))
        self.beta = nn.Parameter(torch.tensor(2.0))

    def forward(self, x: Any) -> tuple[Any, Any]:
        for _ in range(3):
            x = (self.beta * x @ self.patterns.t()).softmax(-1) @ self.patterns
        energy = -torch.logsumexp(self.beta * x @ self.patterns.t(), -1) / self.beta
        return x, energy + 0.5 * (x * x).sum(-1)


class GaussianProcess(nn.Module):
    """The mean of a sparse Gaussian process by random Fourier features."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("frequencies", torch.randn(6, 20))
        self.log_scale = nn.Parameter(torch.zeros(6))
        self.log_variance = nn.Parameter(torch.tensor(0.1))
        self.weights = nn.Parameter(torch.randn(20, 2))
        self.register_buffer("phase", torch.rand(20) * 6.28)

    def forward(self, x: Any) -> Any:
        y = torch.cos((x / self.log_scale.exp()) @ self.frequencies + self.phase)
        return (self.log_variance.exp() * 2 / 20) ** 0.5 * y @ self.weights


class MixtureDensity(nn.Module):
    """A mixture density network with the logarithm of its likelihood."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 16), nn.SELU(), nn.Linear(16, 9))

    def forward(self, x: Any, target: Any) -> Any:
        logits, mean, raw = self.net(x).chunk(3, -1)
        scale = functional.softplus(raw) + 1e-2
        distance = -0.5 * ((target - mean) / scale) ** 2 - scale.log()
        return torch.logsumexp(functional.log_softmax(logits, -1) + distance, -1)


class SinkhornMatching(nn.Module):
    """Entropic optimal transport between two learned sets, five iterations."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(4, 5 * 3), nn.Linear(4, 5 * 3)

    def forward(self, x: Any) -> tuple[Any, Any]:
        a, b = self.left(x).view(-1, 5, 3), self.right(x).view(-1, 5, 3)
        cost = torch.cdist(a, b)
        scores = -cost / 0.5
        for _ in range(5):
            scores = scores - torch.logsumexp(scores, 2, keepdim=True)
            scores = scores - torch.logsumexp(scores, 1, keepdim=True)
        plan = scores.exp()
        return plan, (plan * cost).sum((1, 2))


class ConditionalCoder(nn.Module):
    """A variational autoencoder that decodes its mean, with the divergence."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(6, 16), nn.ELU(), nn.Linear(16, 6))
        self.decode = nn.Sequential(nn.Linear(3, 16), nn.ELU(), nn.Linear(16, 6))

    def forward(self, x: Any) -> tuple[Any, Any]:
        mean, logarithm = self.encode(x).chunk(2, -1)
        divergence = -0.5 * (1 + logarithm - mean.pow(2) - logarithm.exp()).sum(-1)
        return self.decode(mean), divergence


def _of_vectors(kind: type[nn.Module], *widths: int) -> Callable[[], Program]:
    return lambda: (kind(), *vectors(*widths))


PROGRAMS: dict[str, Callable[[], Program]] = {
    "realnvp": _of_vectors(CouplingFlow, 6),
    "spline_flow": _of_vectors(SplineFlow, 6),
    "made": _of_vectors(MaskedAutoregression, 6),
    "neural_ode": _of_vectors(NeuralEquation, 4),
    "kan": lambda: (
        nn.Sequential(SplineLayer(4, 6), SplineLayer(6, 2)),
        *vectors(4),
    ),
    "hypernetwork": _of_vectors(HyperNetwork, 4, 3),
    "hopfield": _of_vectors(HopfieldMemory, 6),
    "fourier_features": _of_vectors(GaussianProcess, 6),
    "mixture_density": _of_vectors(MixtureDensity, 6, 1),
    "sinkhorn": _of_vectors(SinkhornMatching, 4),
    "vae": _of_vectors(ConditionalCoder, 6),
}
