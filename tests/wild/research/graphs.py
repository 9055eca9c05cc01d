"""Layers on graphs and sets of points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

Program = tuple[nn.Module, tuple[Any, ...], tuple[Any, ...] | None]


def random_graph(nodes: int, edges: int, width: int) -> tuple[Any, Any]:
    """Return features [nodes, width] and edges int64[2, edges]."""
    return torch.randn(nodes, width), torch.randint(0, nodes, (2, edges))


class GraphConvolution(nn.Module):
    """Two layers of graph convolution with symmetric normalization."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def propagate(self, x: Any, edges: Any) -> Any:
        source, target = edges[0], edges[1]
        ones = torch.ones_like(source, dtype=x.dtype)
        degree = torch.ones_like(x[:, 0]).index_add(0, target, ones)
        scale = degree.rsqrt()
        messages = x[source] * (scale[source] * scale[target]).unsqueeze(-1)
        return torch.zeros_like(x).index_add(0, target, messages)

    def forward(self, x: Any, edges: Any) -> Any:
        x = self.propagate(self.first(x), edges).relu()
        return self.propagate(self.second(x), edges)


class GraphAttention(nn.Module):
    """Attention over edges with a softmax over the neighbours of each node."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(8, 16, bias=False)
        self.source = nn.Parameter(torch.randn(4, 4) * 0.3)
        self.target = nn.Parameter(torch.randn(4, 4) * 0.3)

    def forward(self, x: Any, edges: Any) -> Any:
        h = self.project(x).view(-1, 4, 4)
        score = (h * self.source).sum(-1)[edges[0]] + (h * self.target).sum(-1)[
            edges[1]
        ]
        score = functional.leaky_relu(score, 0.2)
        index = edges[1].unsqueeze(-1).expand(-1, 4)
        low = torch.full((x.shape[0], 4), -1e9, dtype=x.dtype)
        highest = low.scatter_reduce(0, index, score, "amax")
        weight = (score - highest[edges[1]]).exp()
        total = torch.zeros_like(highest).scatter_add(0, index, weight)
        share = weight / (total[edges[1]] + 1e-9)
        messages = h[edges[0]] * share.unsqueeze(-1)
        return torch.zeros_like(h).index_add(0, edges[1], messages).flatten(1)


def graph_convolution() -> Program:
    """Return a graph convolution network."""
    return GraphConvolution(), random_graph(7, 20, 8), random_graph(11, 33, 8)


def graph_attention() -> Program:
    """Return a graph attention layer."""
    return GraphAttention(), random_graph(7, 20, 8), random_graph(11, 33, 8)


PROGRAMS: dict[str, Callable[[], Program]] = {
    "gcn": graph_convolution,
    "gat": graph_attention,
}
