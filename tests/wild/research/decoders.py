"""Attention variants, cells in loops, decoders, segments, and inputs of many kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.wild.research.inputs import Program, free_sequences, sequences, tokens

_script: Any = torch.jit.script


class TopKAttention(nn.Module):
    """Multi-query attention that keeps the best keys, with talking heads."""

    def __init__(self, width: int = 8, heads: int = 4):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.q = nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(width, 2 * self.size, bias=False)
        self.talk = nn.Parameter(torch.eye(heads))
        self.scale = nn.Parameter(torch.ones(heads, 1, 1))

    def forward(self, x: Any) -> Any:
        b, t, _ = x.shape
        q = self.q(x).view(b, t, self.heads, self.size).transpose(1, 2)
        k, v = self.kv(x).split(self.size, dim=-1)
        scores = torch.matmul(q, k.unsqueeze(1).transpose(-2, -1)) * self.scale
        scores = torch.einsum("bhqk,hg->bgqk", scores, self.talk)
        bound = scores.topk(3, dim=-1).values[..., -1:]
        scores = torch.where(scores < bound, torch.full_like(scores, -1e4), scores)
        mixed = scores.softmax(dim=-1) @ v[:, None]
        return mixed.transpose(1, 2).reshape(b, t, -1)


class ChunkedLocal(nn.Module):
    """Attention in windows of three steps that also see the window before."""

    def __init__(self, width: int = 8, window: int = 3):
        super().__init__()
        self.window = window
        self.qkv = nn.Linear(width, 3 * width)
        self.relative = nn.Parameter(torch.randn(window, 2 * window) * 0.1)

    def forward(self, x: Any) -> Any:
        w = self.window
        q, k, v = self.qkv(x).unflatten(1, (-1, w)).chunk(3, -1)
        k, v = (
            torch.cat([functional.pad(y, (0, 0, 0, 0, 1, 0))[:, :-1], y], 2)
            for y in (k, v)
        )
        scores = q @ k.transpose(-1, -2) / q.size(-1) ** 0.5 + self.relative
        steps = torch.arange(2 * w) - w
        ahead = steps[None, :] > torch.arange(w)[:, None]
        scores = scores.masked_fill(ahead, torch.finfo(x.dtype).min)
        first = torch.arange(q.shape[1])[:, None, None] == 0
        scores = scores.masked_fill(first & (steps < 0), -torch.inf)
        return (scores.softmax(-1) @ v).flatten(1, 2)


class MemorySlots(nn.Module):
    """Set attention with learned seeds, a register buffer and additive masks."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.seeds = nn.Parameter(torch.randn(3, width))
        self.pool = nn.MultiheadAttention(width, 2, batch_first=True)
        self.norm = nn.RMSNorm(width)
        self.out = nn.Bilinear(width, width, 4)

    def forward(self, x: Any, lengths: Any) -> Any:
        padded = torch.arange(x.size(1))[None] >= lengths[:, None]
        seeds = self.seeds.unsqueeze(0).repeat(x.size(0), 1, 1)
        y, weights = self.pool(seeds, x, x, key_padding_mask=padded)
        y = self.norm(seeds + y)
        return self.out(y, y.roll(1, dims=1)), weights


class State(NamedTuple):
    """The state of a cell."""

    h: Any
    c: Any


class NamedCell(nn.Module):
    """A zoneout LSTM by hand with its state in a NamedTuple, and dicts of layers."""

    def __init__(self, width: int = 8):
        super().__init__()
        names = ("input", "forget", "cell", "output")
        self.x = nn.ModuleDict({n: nn.Linear(width, 6) for n in names})
        self.h = nn.ModuleDict({n: nn.Linear(6, 6, bias=False) for n in names})
        self.keep = nn.ParameterDict({"h": torch.rand(6), "c": torch.rand(6)})

    def cell(self, x: Any, state: State) -> State:
        g = {name: layer(x) + self.h[name](state.h) for name, layer in self.x.items()}
        c = g["forget"].sigmoid() * state.c + g["input"].sigmoid() * g["cell"].tanh()
        h = g["output"].sigmoid() * c.tanh()
        return State(torch.lerp(state.h, h, self.keep["h"]), torch.lerp(state.c, c, self.keep["c"]))  # fmt: skip  # noqa: E501

    def forward(self, x: Any) -> Any:
        state = State(*(x.new_zeros(x.size(0), 6) for _ in range(2)))
        outs = []
        for t in range(6):
            state = self.cell(x[:, t], state)
            outs.append(state.h)
        return torch.stack(outs, 1), state.c


class GreedyDecoder(nn.Module):
    """A GRU that decodes greedily for eight steps, with tokens after the end masked."""

    def __init__(self, words: int = 11, width: int = 8):
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.encoder = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * width, width)
        self.cell = nn.GRUCell(width, width)
        self.head = nn.Linear(width, words)

    def forward(self, source: Any) -> Any:
        _, last = self.encoder(self.embed(source))
        h = torch.tanh(self.bridge(torch.cat([last[0], last[1]], -1)))
        token = torch.ones(source.size(0), dtype=torch.long)
        ended = torch.zeros(source.size(0), dtype=torch.bool)
        tokens, total = [], torch.zeros(source.size(0))
        for _ in range(8):
            h = self.cell(self.embed(token), h)
            best, token = self.head(h).log_softmax(-1).max(-1)
            token = token.masked_fill(ended, 0)
            total = total + best.masked_fill(ended, 0.0)
            ended = ended | (token == 2)
            tokens.append(token)
        return torch.stack(tokens, 1), total


class BeamDecoder(nn.Module):
    """Three steps of beam search with states gathered by their parents."""

    def __init__(self, words: int = 7, width: int = 8, beams: int = 2):
        super().__init__()
        self.beams, self.words = beams, words
        self.embed, self.cell = nn.Embedding(words, width), nn.LSTMCell(width, width)
        self.head = nn.Linear(width, words)

    def forward(self, start: Any) -> Any:
        b, k = start.shape[0], self.beams
        h = start.repeat_interleave(k, 0)
        c = torch.zeros_like(h)
        scores = torch.tensor([0.0] + [-1e9] * (k - 1)).repeat(b, 1)
        tokens = torch.ones(b, k, 1, dtype=torch.int64)
        for _ in range(3):
            h, c = self.cell(self.embed(tokens[:, :, -1].flatten()), (h, c))
            log = self.head(h).log_softmax(-1).view(b, k, -1)
            scores, index = (scores[..., None] + log).flatten(1).topk(k)
            parent = torch.div(index, self.words, rounding_mode="floor")
            rows = (parent + torch.arange(b)[:, None] * k).flatten()
            h, c = h.index_select(0, rows), c[rows]
            tokens = tokens.gather(1, parent[..., None].expand(-1, -1, tokens.size(2)))
            tokens = torch.cat([tokens, (index % self.words).unsqueeze(-1)], -1)
        return tokens, scores


def _converge(x: Tensor, weight: Tensor, tolerance: float) -> Tensor:
    """Iterate a contraction until it moves less than a tolerance."""
    z = torch.zeros_like(x)
    count = 0
    while count < 50:
        new = torch.tanh(x + z @ weight.t() * 0.3)
        if bool((new - z).abs().max() < tolerance):
            return new
        z = new
        count += 1
    return z


class Equilibrium(nn.Module):
    """A deep equilibrium layer: a scripted loop with an early return."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width) * 0.2)
        self.out = nn.Linear(width, 3)

    def forward(self, x: Any) -> Any:
        return self.out(_script(_converge)(x.flatten(0, 1), self.weight, 1e-3))


def _scanned(x: Tensor, decay: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Return running averages over time, and the states of every other step."""
    h = torch.zeros_like(x[:, 0])
    outs: list[Tensor] = []
    kept: list[Tensor] = []
    for t in range(x.size(1)):
        h = decay * h + (1 - decay) * x[:, t]
        outs = outs + [h]
        if t % 2 == 0:
            kept.append(h)
    return torch.stack(outs, 1), kept


class ScriptedScan(nn.Module):
    """A scripted scan whose lists grow by concatenation and by a condition."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.logit = nn.Parameter(torch.zeros(width))

    def forward(self, x: Any) -> Any:
        outs, kept = _script(_scanned)(x, self.logit.sigmoid())
        return outs, torch.stack(kept).sum(0)


def _written(x: Tensor, gain: Tensor) -> tuple[Tensor, Tensor]:
    """Return a table that a loop fills in place, and a view of it from before."""
    table = torch.zeros_like(x)
    first = table[:, 0]
    for t in range(x.size(1)):
        table[:, t] = x[:, t] * gain
        if t > 0:
            table[:, t] += table[:, t - 1] * 0.5
    return table, first * 2


class InPlaceTable(nn.Module):
    """Dynamic programming in place in a scripted loop, and a view read after it."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(width))

    def forward(self, x: Any) -> Any:
        return _script(_written)(x, self.gain)


class SegmentPool(nn.Module):
    """Mean, maximum and softmax over the nodes of each graph of a batch."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.gate, self.out = nn.Linear(width, 1), nn.Linear(3 * width, 2)

    def forward(self, x: Any, graph: Any) -> Any:
        count = 3
        sizes = torch.bincount(graph, minlength=count).clamp(min=1)
        wide = graph[:, None].expand_as(x)
        mean = x.new_zeros(count, x.size(1)).scatter_add_(0, wide, x) / sizes[:, None]
        most = x.new_full((count, x.size(1)), -1e9).scatter_reduce_(
            0, wide, x, reduce="amax", include_self=True
        )
        score = self.gate(x).squeeze(-1)
        top = score.new_full((count,), -1e9).index_reduce(0, graph, score, "amax")
        weight = (score - top[graph]).exp()
        total = torch.zeros(count).index_add(0, graph, weight)
        soft = (weight / total[graph])[:, None] * x
        return self.out(torch.cat([mean, most, torch.zeros_like(mean).index_add(0, graph, soft)], 1))  # fmt: skip  # noqa: E501


class TopKPool(nn.Module):
    """Graph pooling by scores: the best half of the nodes and their adjacency."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.project = nn.Parameter(torch.randn(width))
        self.mix = nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        near = (torch.cdist(x, x) < 3.5).float()
        score = x @ self.project / self.project.norm()
        best, index = score.topk(3, dim=1)
        rows = x.take_along_dim(index[..., None], 1) * best.tanh()[..., None]
        near = near.gather(1, index[..., None].expand(-1, -1, near.size(2)))
        near = near.gather(2, index[:, None].expand(-1, 3, -1)) + torch.eye(3)
        degree = near.sum(-1, keepdim=True).rsqrt()
        return self.mix(degree * near * degree.mT @ rows).relu().amax(1)


class MixtureHead(nn.Module):
    """A head of mixtures: weights, logistic distributions and their log likelihood."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.heads = nn.ModuleDict(
            {"logits": nn.Linear(width, 3), "mean": nn.Linear(width, 3), "log_scale": nn.Linear(width, 3)}  # fmt: skip  # noqa: E501
        )

    def forward(self, x: Any) -> Any:
        p = {name: head(x[..., :8]) for name, head in self.heads.items()}
        target = x.mean(-1, keepdim=True)
        centered = (target - p["mean"]) * torch.exp(-p["log_scale"].clamp(min=-7.0))
        log = functional.logsigmoid(centered) - functional.softplus(centered)
        log = log - p["log_scale"].clamp(min=-7.0) + p["logits"].log_softmax(-1)
        return {"log_prob": torch.logsumexp(log, -1), "p": p["logits"].softmax(-1)}


def _free(kind: type[nn.Module]) -> Callable[[], Program]:
    return lambda: (kind(), *free_sequences())


def _fixed(kind: type[nn.Module]) -> Callable[[], Program]:
    return lambda: (kind(), *sequences())


def _with_lengths() -> Program:
    (x,), (y,) = free_sequences()
    return MemorySlots(), (x, torch.tensor([4, 6])), (y, torch.tensor([9, 1, 3]))


def _with_graphs() -> Program:
    small = torch.randn(5, 8), torch.tensor([0, 0, 1, 2, 2])
    return (
        SegmentPool(),
        small,
        (torch.randn(7, 8), torch.tensor([0, 0, 1, 1, 1, 2, 2])),
    )


def _greedy() -> Program:
    return GreedyDecoder(), *tokens(11)


def _beam() -> Program:
    return BeamDecoder(), (torch.randn(2, 8),), (torch.randn(3, 8),)


PROGRAMS: dict[str, Callable[[], Program]] = {
    "top_k_attention": _free(TopKAttention),
    "chunked_local": _free(ChunkedLocal),
    "memory_slots": _with_lengths,
    "named_cell": _fixed(NamedCell),
    "greedy_decoder": _greedy,
    "beam_decoder": _beam,
    "equilibrium": _free(Equilibrium),
    "scripted_scan": _free(ScriptedScan),
    "in_place_table": _free(InPlaceTable),
    "segment_pool": _with_graphs,
    "top_k_pool": _free(TopKPool),
    "mixture_head": _free(MixtureHead),
}
