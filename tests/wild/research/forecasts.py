"""Time series and tables: forecasts, filters and missing values."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.distributions import (
    Normal,
    StudentT,
)
from torch.nn import functional

from tests.wild.research.inputs import Program, vectors


class DeepForecast(nn.Module):
    """DeepAR: a scaled history, an LSTM and the parameters of a distribution."""

    def __init__(self, categories: int = 5):
        super().__init__()
        self.embed = nn.Embedding(categories, 3)
        self.rnn = nn.LSTM(1 + 3 + 2, 10, num_layers=2, batch_first=True, dropout=0.1)
        self.mean, self.scale = nn.Linear(10, 1), nn.Linear(10, 1)
        self.freedom = nn.Linear(10, 1)

    def forward(self, history: Any, category: Any, observed: Any) -> Any:
        total = (history.abs() * observed).sum(1, keepdim=True)
        level = total / observed.sum(1, keepdim=True).clamp(min=1.0)
        level = torch.where(level > 0, level, torch.ones_like(level))
        scaled = (history / level).unsqueeze(-1)
        age = torch.log10(2.0 + torch.arange(history.size(1))).expand_as(history)
        static = self.embed(category).unsqueeze(1).expand(-1, history.size(1), -1)
        inputs = [scaled, static, age.unsqueeze(-1), observed.unsqueeze(-1)]
        y, _ = self.rnn(torch.cat(inputs, dim=-1))
        mean = self.mean(y).squeeze(-1) * level
        scale = functional.softplus(self.scale(y)).squeeze(-1) * level + 1e-6
        freedom = 2.0 + functional.softplus(self.freedom(y)).squeeze(-1)
        density = StudentT(freedom, mean, scale, validate_args=False)
        target = history.roll(-1, dims=1)
        loss = -density.log_prob(target)[:, :-1].mean()
        return (
            mean,
            density.variance,
            loss,
            Normal(mean, scale, validate_args=False).cdf(target),
        )


class KalmanNet(nn.Module):
    """A Kalman filter whose noises are learned: predict, innovate, update."""

    def __init__(self, states: int = 4, seen: int = 2):
        super().__init__()
        self.transition = nn.Parameter(
            torch.eye(states) + 0.05 * torch.randn(states, states)
        )
        self.observe = nn.Parameter(torch.randn(seen, states) * 0.5)
        self.noise = nn.Parameter(torch.zeros(states))
        self.measure = nn.Parameter(torch.zeros(seen))

    def forward(self, x: Any) -> Any:
        b, t, seen = x.shape
        n = self.transition.size(0)
        mean = torch.zeros(b, n, 1)
        spread = torch.eye(n).expand(b, n, n)
        q, r = torch.diag(self.noise.exp()), torch.diag_embed(self.measure.exp())
        f, h = self.transition, self.observe
        means, total = [], 0.0
        for k in range(t):
            mean, spread = f @ mean, f @ spread @ f.T + q
            surprise = x[:, k, :, None] - h @ mean
            s = h @ spread @ h.T + r
            gain = torch.linalg.solve(s, h @ spread).mT
            mean = mean + gain @ surprise
            spread = (torch.eye(n) - gain @ h) @ spread
            distance = (surprise.mT @ torch.linalg.inv(s) @ surprise).flatten()
            total = total - 0.5 * (
                distance + torch.logdet(s) + seen * math.log(2 * math.pi)
            )
            means.append(mean.squeeze(-1))
        return torch.stack(means, 1), total


def _history() -> Program:
    def inputs(b: int, t: int) -> tuple[Any, ...]:
        seen = (torch.rand(b, t) > 0.3).float()
        return torch.rand(b, t) * seen * 9, torch.randint(0, 5, (b,)), seen

    return DeepForecast(), inputs(3, 8), inputs(4, 11)


class TabularAttention(nn.Module):
    """TabNet: steps that choose columns by sparsemax, with ghost batch norms."""

    def __init__(self, width: int = 8, steps: int = 3):
        super().__init__()
        self.steps = steps
        self.norm = nn.BatchNorm1d(width, momentum=0.01)
        self.shared = nn.Linear(width, 16, bias=False)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(8, 16, bias=False), nn.BatchNorm1d(16), nn.GLU())
            for _ in range(steps)
        )
        self.choose = nn.ModuleList(
            nn.Linear(8, width, bias=False) for _ in range(steps)
        )
        self.last = nn.Linear(8, 2)

    @staticmethod
    def sparsemax(x: Any) -> Any:
        x = x - x.max(dim=-1, keepdim=True)[0]
        ordered = torch.sort(x, descending=True, dim=-1)[0]
        rank = torch.arange(1, x.size(-1) + 1, device=x.device, dtype=x.dtype)
        above = 1 + rank * ordered > ordered.cumsum(-1)
        count = above.sum(dim=-1, keepdim=True)
        total = ordered.cumsum(-1).gather(-1, count - 1)
        return torch.clamp(x - (total - 1) / count.to(x.dtype), min=0)

    def forward(self, x: Any) -> Any:
        x = self.norm(x)
        prior = torch.ones_like(x)
        result, entropy = 0, 0
        attended = functional.glu(self.shared(x))
        masks = []
        for choose, block in zip(self.choose, self.blocks, strict=True):
            mask = self.sparsemax(torch.mul(choose(attended), prior))
            entropy = entropy - (mask * torch.log(mask + 1e-15)).sum(1).mean()
            prior = torch.mul(1.3 - mask, prior)
            attended = (
                block(functional.glu(self.shared(mask * x))) + attended
            ) * math.sqrt(0.5)
            result = result + functional.relu(attended)
            masks.append(mask)
        return self.last(result), entropy / self.steps, torch.stack(masks, 1)


class HierarchicalForecast(nn.Module):
    """N-HiTS: pooled inputs, coefficients and interpolation at several rates."""

    def __init__(self, length: int = 12, horizon: int = 6):
        super().__init__()
        self.rates = (4, 2, 1)
        self.horizon = horizon
        self.stacks = nn.ModuleList(
            nn.Sequential(
                nn.Linear(math.ceil(length / r), 16),
                nn.ReLU(),
                nn.Linear(16, length + max(horizon // r, 1)),
            )
            for r in self.rates
        )

    def forward(self, x: Any) -> Any:
        forecast = x[:, -1:].repeat(1, self.horizon)
        rest = x.flip(-1)
        for rate, stack in zip(self.rates, self.stacks, strict=True):
            pooled = functional.max_pool1d(
                rest.unsqueeze(1), rate, rate, ceil_mode=True
            )
            theta = stack(pooled.squeeze(1))
            back, knots = theta[:, : x.size(1)], theta[:, x.size(1) :]
            rest = rest - back
            forecast = (
                forecast
                + functional.interpolate(
                    knots[:, None], size=self.horizon, mode="linear"
                )[:, 0]
            )
        return forecast, functional.smooth_l1_loss(
            rest, torch.zeros_like(rest), beta=0.5
        )


class GatedDecay(nn.Module):
    """GRU-D: missing values decay to the mean, as do hidden states."""

    def __init__(self, width: int = 4, hidden: int = 6):
        super().__init__()
        self.input_decay = nn.Parameter(torch.rand(width))
        self.state_decay = nn.Linear(width, hidden)
        self.cell = nn.GRUCell(2 * width, hidden)
        self.register_buffer("means", torch.randn(width))

    def forward(self, x: Any, seen: Any, gaps: Any) -> Any:
        state = torch.zeros(x.size(0), self.cell.hidden_size)
        last = self.means.expand(x.size(0), -1)
        for t in range(x.size(1)):
            known, gap = seen[:, t], gaps[:, t]
            last = torch.where(known, x[:, t], last)
            fade = torch.exp(-torch.relu(self.input_decay) * gap)
            filled = torch.where(known, x[:, t], fade * last + (1 - fade) * self.means)
            state = state * torch.exp(-functional.relu(self.state_decay(gap)))
            state = self.cell(torch.cat([filled, known.float()], -1), state)
        return state


def _gaps() -> Program:
    def inputs(b: int) -> tuple[Any, ...]:
        return torch.randn(b, 5, 4), torch.rand(b, 5, 4) > 0.4, torch.rand(b, 5, 4)

    return GatedDecay(), inputs(2), inputs(3)


PROGRAMS = {
    "deep_forecast": _history,
    "kalman_net": lambda: (
        KalmanNet(),
        (torch.randn(2, 4, 2),),
        (torch.randn(3, 4, 2),),
    ),
    "tabnet": lambda: (TabularAttention(), *vectors(8)),
    "hierarchical_forecast": lambda: (HierarchicalForecast(), *vectors(12)),
    "gated_decay": _gaps,
}
