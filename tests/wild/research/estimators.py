"""Estimators of science: densities, fields, graphs and spikes."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.distributions import (
    Beta,
    Gamma,
    MultivariateNormal,
    NegativeBinomial,
    Normal,
)
from torch.nn import functional

from tests.wild.research.inputs import Program, vectors


class SurrogateSpike(torch.autograd.Function):
    """A step whose gradient is that of a fast sigmoid."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        context.save_for_backward(x)
        return (x > 0).to(x.dtype)

    @staticmethod
    def backward(context: Any, grad: Any) -> Any:
        (x,) = context.saved_tensors
        return grad / (10.0 * x.abs() + 1.0) ** 2


class SpikingNet(nn.Module):
    """Leaky integrate-and-fire neurons with a surrogate gradient and adaptation."""

    def __init__(self, width: int = 8, hidden: int = 12):
        super().__init__()
        self.enter, self.back = nn.Linear(width, hidden), nn.Linear(
            hidden, hidden, bias=False
        )
        self.decay = nn.Parameter(torch.full((hidden,), 2.0))
        self.leave = nn.Linear(hidden, 3)

    def forward(self, x: Any) -> Any:
        b, t, _ = x.shape
        potential = torch.zeros(b, self.back.in_features)
        spikes = threshold = torch.zeros_like(potential)
        total = torch.zeros(b, 3)
        for step in range(t):
            current = self.enter(x[:, step]) + self.back(spikes)
            potential = (
                torch.sigmoid(self.decay) * potential * (1 - spikes.detach()) + current
            )
            spikes = SurrogateSpike.apply(potential - 0.3 - threshold)
            threshold = 0.9 * threshold + 0.1 * spikes
            total = total + self.leave(spikes)
        return total / t, spikes.sum(-1)


class PosteriorProcess(nn.Module):
    """A Gaussian process: kernel, Cholesky factor, mean and variance, likelihood."""

    def __init__(self, width: int = 3):
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(width))
        self.amplitude = nn.Parameter(torch.tensor(0.3))
        self.noise = nn.Parameter(torch.tensor(-1.0))

    def kernel(self, a: Any, b: Any) -> Any:
        a, b = a / self.scale.exp(), b / self.scale.exp()
        distance = torch.cdist(a, b).clamp_min(1e-10)
        near = math.sqrt(5.0) * distance
        return self.amplitude.exp() * (1 + near + near**2 / 3) * torch.exp(-near)

    def forward(self, x: Any, y: Any, query: Any) -> Any:
        k = self.kernel(x, x) + self.noise.exp() * torch.eye(x.size(0))
        factor = torch.linalg.cholesky(k)
        weights = torch.cholesky_solve(y.unsqueeze(-1), factor)
        cross = self.kernel(query, x)
        mean = (cross @ weights).squeeze(-1)
        half = torch.linalg.solve_triangular(factor, cross.T, upper=False)
        spread = self.kernel(query, query) - half.T @ half
        bound = (
            -0.5 * (y @ weights).sum()
            - factor.diagonal().log().sum()
            - 0.5 * x.size(0) * math.log(2 * math.pi)
        )
        return mean, torch.diagonal(spread).clamp(min=0), bound


class CountModel(nn.Module):
    """scVI: a variational coder of counts, with gamma functions in its likelihood."""

    def __init__(self, genes: int = 6, latent: int = 3):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(genes, 8), nn.LayerNorm(8), nn.ReLU())
        self.mean, self.spread = nn.Linear(8, latent), nn.Linear(8, latent)
        self.decode = nn.Linear(latent, genes)
        self.dispersion = nn.Parameter(torch.randn(genes))
        self.share = nn.Linear(latent, 2)

    def forward(self, counts: Any) -> Any:
        hidden = self.encode(torch.log1p(counts))
        code = Normal(
            self.mean(hidden),
            functional.softplus(self.spread(hidden)) + 1e-4,
            validate_args=False,
        )
        library = counts.sum(-1, keepdim=True)
        rate = library * self.decode(code.mean).softmax(-1)
        theta = self.dispersion.exp()
        logits = torch.log(rate + 1e-8) - torch.log(theta + 1e-8)
        likelihood = NegativeBinomial(
            theta, logits=logits, validate_args=False
        ).log_prob(counts)
        a, b = (functional.softplus(self.share(code.mean)) + 0.5).unbind(-1)
        beta, gamma = Beta(a, b, validate_args=False), Gamma(a, b, validate_args=False)
        prior = Normal(
            torch.zeros_like(code.mean), torch.ones_like(code.mean), validate_args=False
        )
        divergence = torch.distributions.kl_divergence(code, prior).sum(-1)
        return (
            likelihood.sum(-1) - divergence,
            beta.entropy(),
            gamma.entropy(),
            code.icdf(torch.tensor(0.9)),
        )


class InverseFlow(nn.Module):
    """An affine autoregressive flow run backwards, one coordinate after another."""

    def __init__(self, width: int = 5):
        super().__init__()
        self.width = width
        self.first, self.second = nn.Linear(width, 12), nn.Linear(12, 2 * width)
        order = torch.arange(12) % (width - 1)
        self.register_buffer("mask1", (order[:, None] >= torch.arange(width)).float())
        self.register_buffer(
            "mask2", (torch.arange(width)[:, None] > order).float().repeat(2, 1)
        )

    def parameters_of(self, x: Any) -> Any:
        h = torch.tanh(
            functional.linear(x, self.first.weight * self.mask1, self.first.bias)
        )
        y = functional.linear(h, self.second.weight * self.mask2, self.second.bias)
        shift, scale = y.chunk(2, -1)
        return shift, scale.clamp(-3.0, 3.0)

    def forward(self, z: Any) -> Any:
        x = torch.zeros_like(z)
        for k in range(self.width):
            shift, scale = self.parameters_of(x)
            value = z[:, k] * scale[:, k].exp() + shift[:, k]
            x = torch.cat([x[:, :k], value[:, None], x[:, k + 1 :]], dim=1)
        _, scale = self.parameters_of(x)
        return x, -scale.sum(-1)


class SineField(nn.Module):
    """SIREN: sines, and the gradient and Laplacian of the field by hand."""

    def __init__(self, width: int = 12):
        super().__init__()
        self.first, self.second = nn.Linear(2, width), nn.Linear(width, width)
        self.last = nn.Linear(width, 1)

    def forward(self, points: Any) -> Any:
        a = 30 * self.first(points)
        b = 30 * self.second(a.sin())
        slope_a = 30 * self.first.weight
        slope_b = torch.einsum(
            "ij,nj,jd->nid", 30 * self.second.weight, a.cos(), slope_a
        )
        gradient = torch.einsum("i,ni,nid->nd", self.last.weight[0], b.cos(), slope_b)
        return self.last(b.sin()), gradient, gradient.norm(dim=-1)


class ConditionalProcess(nn.Module):
    """A neural process: a set of pairs, cross-attention, and a full covariance."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.pair = nn.Sequential(
            nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width)
        )
        self.query = nn.Linear(2, width)
        self.attend = nn.MultiheadAttention(width, 2, batch_first=True)
        self.head = nn.Linear(width, 1 + 3)

    def forward(self, x: Any, y: Any, mask: Any, target: Any) -> Any:
        pairs = self.pair(torch.cat([x, y], -1))
        mixed, share = self.attend(
            self.query(target), pairs, pairs, key_padding_mask=mask
        )
        mean, factors = self.head(mixed).split([1, 3], dim=-1)
        spread = factors @ factors.mT + 0.1 * torch.eye(target.size(1))
        density = MultivariateNormal(mean.squeeze(-1), spread, validate_args=False)
        return density.log_prob(torch.zeros(target.size(1))), density.entropy(), share


class SpectralGraph(nn.Module):
    """A graph network: Laplacian eigenvectors as positions, Chebyshev filters."""

    def __init__(self, width: int = 4):
        super().__init__()
        self.filters = nn.Parameter(torch.randn(3, width + 2, 8) * 0.3)
        self.last = nn.Linear(8, 2)

    def forward(self, x: Any, adjacency: Any) -> Any:
        n = x.size(-2)
        joined = ((adjacency + adjacency.mT) > 0.8).float().tril(-1)
        joined = joined + joined.mT
        degree = joined.sum(-1).clamp(min=1)
        root = degree.rsqrt()
        laplacian = torch.eye(n) - root[:, :, None] * joined * root[:, None, :]
        values, vectors = torch.linalg.eigh(
            laplacian + 0.01 * torch.diag(torch.arange(n).float())
        )
        y = torch.cat([x, vectors[..., 1:3].square()], dim=-1)
        scaled = laplacian - torch.eye(n)
        terms = [y, scaled @ y]
        terms.append(2 * scaled @ terms[1] - terms[0])
        y = sum(t @ w for t, w in zip(terms, self.filters, strict=True))
        return self.last(y.relu().mean(1)), values[:, :3]


def _points() -> Program:
    def inputs(n: int, m: int) -> tuple[Any, ...]:
        return torch.randn(n, 3), torch.randn(n), torch.randn(m, 3)

    return PosteriorProcess(), inputs(6, 4), inputs(9, 5)


def _counts() -> Program:
    small, large = ((torch.randint(0, 9, (n, 6)).float() + 1,) for n in (4, 7))
    return CountModel(), small, large


def _process() -> Program:
    def inputs(b: int, n: int, m: int) -> tuple[Any, ...]:
        mask = torch.zeros(b, n, dtype=torch.bool)
        mask[:, -1] = True
        return torch.randn(b, n, 2), torch.randn(b, n, 1), mask, torch.randn(b, m, 2)

    return ConditionalProcess(), inputs(2, 5, 4), inputs(3, 7, 6)


def _laplacian() -> Program:
    def inputs(b: int, n: int) -> tuple[Any, ...]:
        return torch.randn(b, n, 4), torch.rand(b, n, n)

    return SpectralGraph(), inputs(2, 6), inputs(3, 8)


PROGRAMS = {
    "spiking": lambda: (SpikingNet(), (torch.randn(2, 5, 8),), (torch.randn(3, 5, 8),)),
    "posterior_process": _points,
    "count_model": _counts,
    "inverse_flow": lambda: (InverseFlow(), *vectors(5)),
    "sine_field": lambda: (SineField(), *vectors(2)),
    "conditional_process": _process,
    "spectral_graph": _laplacian,
}
