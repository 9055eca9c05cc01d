"""Layers on graphs and sets of points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tests.wild.research.inputs import Program


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
    """Attention over edges with a softmax over the neighbors of each node."""

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


class IsomorphismNetwork(nn.Module):
    """Layers that sum over neighbors, and the mean over each graph of a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.eps = nn.Parameter(torch.zeros(2))
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8)
            )
            for _ in range(2)
        )
        self.head = nn.Linear(8, 3)

    def forward(self, x: Any, edges: Any, graph: Any) -> Any:
        for k, layer in enumerate(self.layers):
            near = torch.zeros_like(x).index_add(0, edges[1], x[edges[0]])
            x = layer((1 + self.eps[k]) * x + near)
        index = graph.unsqueeze(-1).expand_as(x)
        pooled = x.new_zeros(3, 8).scatter_reduce(
            0, index, x, "mean", include_self=False
        )
        return self.head(pooled)


class EdgeConvolution(nn.Module):
    """Layers over the nearest neighbors of points, found in the features."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(6, 12), nn.LeakyReLU(0.2))

    def forward(self, x: Any) -> Any:
        distance = torch.cdist(x, x)
        index = distance.topk(4, largest=False).indices
        batch = torch.arange(x.shape[0]).view(-1, 1, 1)
        near = x[batch, index]
        middle = x.unsqueeze(2).expand_as(near)
        return self.layer(torch.cat([middle, near - middle], -1)).amax(2)


class EquivariantLayer(nn.Module):
    """A layer that moves points by their differences (EGNN)."""

    def __init__(self) -> None:
        super().__init__()
        self.message = nn.Sequential(nn.Linear(9, 12), nn.SiLU())
        self.move, self.update = nn.Linear(12, 1, bias=False), nn.Linear(16, 4)

    def forward(self, h: Any, x: Any) -> tuple[Any, Any]:
        n = h.shape[1]
        difference = x.unsqueeze(2) - x.unsqueeze(1)
        square = (difference**2).sum(-1, keepdim=True)
        pairs = [h.unsqueeze(2).expand(-1, -1, n, -1)]
        pairs += [h.unsqueeze(1).expand(-1, n, -1, -1), square]
        message = self.message(torch.cat(pairs, -1))
        x = x + (difference * self.move(message)).mean(2)
        return h + self.update(torch.cat([h, message.sum(2)], -1)), x


class RelationalGraph(nn.Module):
    """Graph convolution with a matrix for each kind of edge, from two bases."""

    def __init__(self) -> None:
        super().__init__()
        self.bases = nn.Parameter(torch.randn(2, 8, 6) * 0.3)
        self.mix = nn.Parameter(torch.randn(3, 2))
        self.own = nn.Linear(8, 6)

    def forward(self, x: Any, edges: Any, kinds: Any) -> Any:
        matrices = torch.einsum("rb,bio->rio", self.mix, self.bases)
        messages = torch.bmm(x[edges[0]].unsqueeze(1), matrices[kinds]).squeeze(1)
        y = self.own(x)
        return y.index_add(0, edges[1], messages).tanh()


class GraphTransformer(nn.Module):
    """Attention between all nodes with a bias by their distance."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.bias = nn.Linear(8, 24), nn.Embedding(5, 2)
        self.norm = nn.LayerNorm(8)

    def forward(self, x: Any, distance: Any) -> Any:
        b, n, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, n, 3, 2, 4).permute(2, 0, 3, 1, 4)
        bias = self.bias(distance).permute(0, 3, 1, 2)
        share = (q @ k.transpose(-1, -2) / 2 + bias).softmax(-1)
        return x + (share @ v).transpose(1, 2).reshape(b, n, 8)


def _graph(kind: type[nn.Module], extra: int = 0, of_nodes: bool = False) -> Program:
    """Return a model on a random graph; ``extra`` is the number of kinds, if any."""
    sizes = []
    for nodes, edges in ((7, 20), (11, 33)):
        count = nodes if of_nodes else edges
        kinds = (torch.randint(0, extra, (count,)),) if extra else ()
        sizes.append((*random_graph(nodes, edges, 8), *kinds))
    return kind(), sizes[0], sizes[1]


def _points() -> Program:
    return EdgeConvolution(), (torch.randn(2, 9, 3),), (torch.randn(3, 12, 3),)


def _moving() -> Program:
    sizes = [(torch.randn(b, n, 4), torch.randn(b, n, 3)) for b, n in ((2, 5), (3, 7))]
    return EquivariantLayer(), sizes[0], sizes[1]


def _distances() -> Program:
    sizes = [
        (torch.randn(b, n, 8), torch.randint(0, 5, (b, n, n)))
        for b, n in ((2, 5), (3, 7))
    ]
    return GraphTransformer(), sizes[0], sizes[1]


PROGRAMS: dict[str, Callable[[], Program]] = {
    "gcn": lambda: _graph(GraphConvolution),
    "gat": lambda: _graph(GraphAttention),
    "gin": lambda: _graph(IsomorphismNetwork, 3, True),
    "rgcn": lambda: _graph(RelationalGraph, 3),
    "edge_convolution": _points,
    "egnn": _moving,
    "graph_transformer": _distances,
}
