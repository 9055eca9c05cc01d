"""Attention over sets and tables, recommendation, and control."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tests.wild.research.inputs import Program, free_sequences, vectors


class InducedAttention(nn.Module):
    """A set transformer: induced attention and pooling by a learned seed."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.induce = nn.Parameter(torch.randn(1, 3, width))
        self.seed = nn.Parameter(torch.randn(1, 1, width))
        self.attend = nn.ModuleList(
            nn.MultiheadAttention(width, 2, batch_first=True) for _ in range(3)
        )
        self.feed = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, width))

    def forward(self, x: Any) -> Any:
        batch = x.shape[0]
        points = self.induce.expand(batch, -1, -1)
        middle, _ = self.attend[0](points, x, x)
        x = x + self.attend[1](x, middle, middle)[0]
        x = x + self.feed(x)
        return self.attend[2](self.seed.expand(batch, -1, -1), x, x)[0].squeeze(1)


class LatentAttention(nn.Module):
    """A perceiver: latents read the input, then themselves, twice with one layer."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(4, width))
        self.query, self.pair = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.norm = nn.LayerNorm(width)
        self.layer = nn.TransformerEncoderLayer(
            width, 2, 16, dropout=0.0, batch_first=True, norm_first=True
        )

    def forward(self, x: Any) -> Any:
        y = self.latents.unsqueeze(0).expand(x.shape[0], -1, -1)
        for _ in range(2):
            k, v = self.pair(self.norm(x)).chunk(2, -1)
            read = functional.scaled_dot_product_attention(self.query(y), k, v)
            y = self.layer(y + read)
        return y


class SlotAttention(nn.Module):
    """Slots that compete for inputs, updated by a GRU cell."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.slots = nn.Parameter(torch.randn(3, width))
        self.key, self.value = nn.Linear(width, width), nn.Linear(width, width)
        self.query, self.cell = nn.Linear(width, width), nn.GRUCell(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Any) -> Any:
        batch, _, width = x.shape
        k, v = self.key(x), self.value(x)
        slots = self.slots.unsqueeze(0).expand(batch, -1, -1)
        for _ in range(3):
            scores = self.query(self.norm(slots)) @ k.transpose(1, 2) / width**0.5
            share = scores.softmax(1) + 1e-8
            reads = (share / share.sum(-1, keepdim=True)) @ v
            slots = self.cell(reads.reshape(-1, width), slots.reshape(-1, width)).view(
                batch, 3, width
            )
        return slots


class FactorizationMachine(nn.Module):
    """A deep factorization machine over categories and numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, 4) for n in (10, 20, 30))
        self.wide = nn.EmbeddingBag(60, 1, mode="sum")
        self.deep = nn.Sequential(nn.Linear(15, 16), nn.ReLU(), nn.Linear(16, 1))
        self.register_buffer("starts", torch.tensor([0, 10, 30]))

    def forward(self, categories: Any, numbers: Any) -> Any:
        rows = [table(categories[:, k]) for k, table in enumerate(self.tables)]
        stacked = torch.stack(rows, 1)
        pairs = 0.5 * (stacked.sum(1) ** 2 - (stacked**2).sum(1)).sum(-1, keepdim=True)
        deep = self.deep(torch.cat([stacked.flatten(1), numbers], -1))
        return torch.sigmoid(self.wide(categories + self.starts) + pairs + deep)


class FeatureTokens(nn.Module):
    """A transformer over the columns of a table, with a token for the class."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(6, width))
        self.shift = nn.Parameter(torch.randn(6, width))
        self.first = nn.Parameter(torch.randn(1, 1, width))
        layer = nn.TransformerEncoderLayer(width, 2, 16, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 3)

    def forward(self, x: Any) -> Any:
        y = x.unsqueeze(-1) * self.scale + self.shift
        y = torch.cat([self.first.expand(x.shape[0], -1, -1), y], 1)
        return self.head(self.encoder(y)[:, 0])


class SoftTree(nn.Module):
    """A soft decision tree of depth three."""

    def __init__(self) -> None:
        super().__init__()
        self.splits, self.leaves = nn.Linear(6, 7), nn.Parameter(torch.randn(8, 3))

    def forward(self, x: Any) -> Any:
        right = torch.sigmoid(self.splits(x))
        share, start = torch.ones_like(right[:, :1]), 0
        for depth in range(3):
            p = right[:, start : start + 2**depth]
            share = torch.stack([share * (1 - p), share * p], -1).flatten(1)
            start += 2**depth
        return share @ self.leaves


class DuelingAgent(nn.Module):
    """A dueling network with values of actions by quantiles."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.1))
        self.value, self.advantage = nn.Linear(16, 5), nn.Linear(16, 4 * 5)

    def forward(self, x: Any) -> tuple[Any, Any]:
        y = self.body(x)
        advantage = self.advantage(y).view(-1, 4, 5)
        value = self.value(y).unsqueeze(1) + advantage - advantage.mean(1, keepdim=True)
        return value, value.mean(-1).argmax(-1)


class SquashedActor(nn.Module):
    """A policy with a squashed mean and the logarithm of its density there."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 16), nn.Softsign(), nn.Linear(16, 6))

    def forward(self, x: Any) -> tuple[Any, Any]:
        mean, logarithm = self.body(x).chunk(2, -1)
        logarithm = logarithm.clamp(-5, 2)
        action = torch.tanh(mean)
        density = -logarithm - 0.919 - torch.log1p(-(action**2) + 1e-6)
        return action, density.sum(-1)


class ContrastivePair(nn.Module):
    """Two encoders with a learned temperature, and the matrix of similarities."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(6, 8), nn.Linear(4, 8)
        self.logit_scale = nn.Parameter(torch.tensor(2.6))

    def forward(self, a: Any, b: Any) -> Any:
        a = functional.normalize(self.left(a), dim=-1)
        b = functional.normalize(self.right(b), dim=-1)
        return self.logit_scale.exp() * a @ b.t()


class RelationNetwork(nn.Module):
    """Sums over all pairs of objects, with a mask of the diagonal."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs = nn.Sequential(nn.Linear(16, 12), nn.CELU(), nn.Linear(12, 6))
        self.head = nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        n = x.shape[1]
        a = x.unsqueeze(2).expand(-1, -1, n, -1)
        b = x.unsqueeze(1).expand(-1, n, -1, -1)
        keep = 1 - torch.eye(n)
        y = self.pairs(torch.cat([a, b], -1)) * keep.view(1, n, n, 1)
        return self.head(y.sum((1, 2)))


def _categories() -> Program:
    small, large = ((torch.randint(0, 10, (n, 3)), torch.randn(n, 3)) for n in (4, 7))
    return FactorizationMachine(), small, large


def _of_sets(kind: type[nn.Module]) -> Callable[[], Program]:
    return lambda: (kind(), *free_sequences())


def _of_vectors(kind: type[nn.Module], *widths: int) -> Callable[[], Program]:
    return lambda: (kind(), *vectors(*widths))


PROGRAMS: dict[str, Callable[[], Program]] = {
    "set_transformer": _of_sets(InducedAttention),
    "perceiver": _of_sets(LatentAttention),
    "slot_attention": _of_sets(SlotAttention),
    "relation_network": _of_sets(RelationNetwork),
    "deepfm": _categories,
    "ft_transformer": _of_vectors(FeatureTokens, 6),
    "soft_tree": _of_vectors(SoftTree, 6),
    "dueling_dqn": _of_vectors(DuelingAgent, 6),
    "sac_actor": _of_vectors(SquashedActor, 6),
    "contrastive": _of_vectors(ContrastivePair, 6, 4),
}
