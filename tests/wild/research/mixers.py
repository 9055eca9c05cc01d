"""Sequence models with positions, gates, spectra and state spaces of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tests.wild.research.inputs import Program, free_sequences, sequences


class LinearBias(nn.Module):
    """Causal attention with ALiBi: a slope for each head instead of positions."""

    def __init__(self, width: int = 8, heads: int = 2):
        super().__init__()
        self.heads = heads
        self.pack, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        slopes = 2.0 ** -torch.arange(1, heads + 1).float()
        self.register_buffer("slopes", slopes, persistent=False)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        q, k, v = self.pack(x).view(batch, length, self.heads, -1).chunk(3, -1)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
        steps = torch.arange(length, device=x.device)
        distance = (steps[None, :] - steps[:, None]).clamp(max=0)
        scores = scores + self.slopes[:, None, None] * distance
        scores = scores.masked_fill(steps[None, :] > steps[:, None], float("-inf"))
        mixed = torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), v)
        return self.out(mixed.reshape(batch, length, width))


class BucketBias(nn.Module):
    """Attention with a learned bias for each bucket of distances, as in T5."""

    def __init__(self, width: int = 8, heads: int = 2):
        super().__init__()
        self.heads = heads
        self.pack = nn.Linear(width, 3 * width, bias=False)
        self.bias = nn.Embedding(8, heads)

    def bucket(self, distance: Any) -> Any:
        far = distance.abs()
        log = 2 + (far.clamp(min=1).float() / 2).log2().to(torch.long)
        near = torch.where(far < 2, far, log.clamp(max=3))
        return near + (distance > 0).to(torch.long) * 4

    def forward(self, x: Any) -> Any:
        steps = torch.arange(x.size(1))
        table = self.bias(self.bucket(steps[None] - steps[:, None])).permute(2, 0, 1)
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.pack(x).split(x.size(-1), -1)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=table[None])
        return mixed.transpose(1, 2).flatten(2)


class OffsetRotary(nn.Module):
    """Attention with rotary positions that begin at a number of each sequence."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.pack = nn.Linear(width, 3 * width)
        inverse = 100.0 ** (-torch.arange(0, width, 2).float() / width)
        self.register_buffer("inverse", inverse, persistent=False)

    def turn(self, x: Any, angle: Any) -> Any:
        even, odd = x[..., ::2], x[..., 1::2]
        cos, sin = angle.cos(), angle.sin()
        pair = torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1)
        return pair.flatten(-2)

    def forward(self, x: Any, first: Any) -> Any:
        steps = first[:, None] + torch.arange(x.shape[1])
        angle = steps[..., None].to(x.dtype) * self.inverse
        q, k, v = self.pack(x).chunk(3, dim=-1)
        q, k = self.turn(q, angle), self.turn(k, angle)
        return torch.bmm(torch.softmax(torch.bmm(q, k.mT), -1), v)


class SpectralMixer(nn.Module):
    """A mixer that multiplies the spectrum over time by complex weights."""

    def __init__(self, width: int = 8, modes: int = 4):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(modes, width, width, 2) * 0.3)
        self.skip = nn.Conv1d(width, width, 1)
        self.modes = modes

    def forward(self, x: Any) -> Any:
        spectrum = torch.fft.rfft(x, dim=1)[:, : self.modes]
        weight = torch.view_as_complex(self.weight)
        mixed = torch.einsum("btc,tcd->btd", spectrum, weight)
        back = torch.fft.irfft(mixed, n=x.size(1), dim=1)
        return functional.gelu(back + self.skip(x.mT).mT)


class FourierMixer(nn.Module):
    """FNet: the real part of a transform over time and features, and a feed."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 16), nn.GELU(), nn.Linear(16, width))

    def forward(self, x: Any) -> Any:
        x = self.first(x + torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real)
        return self.second(x + self.feed(x))


class DiagonalStates(nn.Module):
    """S4D: a convolution with the kernel of a diagonal state space."""

    def __init__(self, width: int = 8, states: int = 4):
        super().__init__()
        self.log_step = nn.Parameter(torch.rand(width) - 3)
        self.log_real = nn.Parameter(torch.rand(width, states).log())
        self.imag = nn.Parameter(torch.arange(states) * torch.ones(width, 1) * 3.0)
        self.gain = nn.Parameter(torch.randn(width, states, 2) * 0.3)
        self.skip = nn.Parameter(torch.randn(width))

    def forward(self, x: Any) -> Any:
        length = x.size(1)
        a = torch.complex(-torch.exp(self.log_real), self.imag)
        step = a * self.log_step.exp()[:, None]
        gain = torch.view_as_complex(self.gain) * (torch.exp(step) - 1) / a
        powers = torch.exp(step[..., None] * torch.arange(length))
        kernel = 2 * torch.einsum("cn,cnl->cl", gain, powers).real
        size = 2 * length
        u = torch.fft.rfft(x.mT, n=size)
        y = torch.fft.irfft(u * torch.fft.rfft(kernel, n=size), n=size)[..., :length]
        return (y + self.skip[:, None] * x.mT).mT


class DilatedRecurrence(nn.Module):
    """Recurrent layers that skip steps: the state of step t is from step t - 2."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.cells = nn.ModuleList(nn.GRUCell(width, width) for _ in range(2))

    def forward(self, x: Any) -> Any:
        for dilation, cell in enumerate(self.cells, 1):
            states = [torch.zeros_like(x[:, 0]) for _ in range(dilation)]
            for step in range(6):
                states.append(cell(x[:, step], states[-dilation]))
            x = torch.stack(states[dilation:], 1)
        return x


class RecurrentLoop(nn.Module):
    """An LSTM cell with peepholes, written into a buffer slice by slice."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.gates = nn.Linear(2 * width, 4 * width)
        self.peep = nn.Parameter(torch.randn(3, width) * 0.1)

    def forward(self, x: Any) -> Any:
        h, c = x.new_zeros(x.shape[0], 8), x.new_zeros(x.shape[0], 8)
        states = torch.empty_like(x)
        for step in range(6):
            i, f, g, o = self.gates(torch.cat([x[:, step], h], 1)).chunk(4, 1)
            i = torch.sigmoid(i + self.peep[0] * c)
            f = torch.sigmoid(f + self.peep[1] * c)
            c = f * c + i * g.tanh()
            h = torch.sigmoid(o + self.peep[2] * c) * c.tanh()
            states[:, step] = h
        states[:, ::2] *= 0.5
        return states


class RoutedExperts(nn.Module):
    """Two of four experts for each token, with a load-balancing loss."""

    def __init__(self, width: int = 8, count: int = 4):
        super().__init__()
        self.gate = nn.Linear(width, count, bias=False)
        self.up = nn.Parameter(torch.randn(count, width, 16) * 0.3)
        self.down = nn.Parameter(torch.randn(count, 16, width) * 0.3)
        self.count = count

    def forward(self, x: Any) -> Any:
        tokens = x.reshape(-1, x.shape[-1])
        chances = self.gate(tokens).softmax(-1)
        best, index = chances.topk(2, -1)
        best = best / best.sum(-1, keepdim=True)
        weights = torch.zeros_like(chances).scatter_(1, index, best)
        hidden = functional.silu(torch.einsum("td,edh->teh", tokens, self.up))
        mixed = torch.einsum("teh,ehd,te->td", hidden, self.down, weights)
        share = functional.one_hot(index, self.count).float().mean((0, 1))
        return mixed.view_as(x), self.count * (share * chances.mean(0)).sum()


class MaskedLoss(nn.Module):
    """A tagger that returns its loss, without the steps whose label is -100."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.head = nn.Linear(width, 5)

    def forward(self, x: Any, labels: Any) -> Any:
        logits = self.head(x)
        loss = functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), ignore_index=-100,
            label_smoothing=0.1,
        )  # fmt: skip
        kept = labels != -100
        right = (logits.argmax(-1) == labels) & kept
        return loss, right.sum().float() / kept.sum().clamp(min=1)


class WindowedNorm(nn.Module):
    """A difference of running sums, maxima so far, and norms over a window."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: Any) -> Any:
        sums = x.cumsum(1)
        means = (sums[:, 2:] - sums[:, :-2]) / 2
        most = torch.cummax(x, 1).values[:, 2:]
        windows = x.unfold(1, 3, 1)
        return self.scale * (means + most) / (1 + windows.norm(dim=-1)) + torch.logcumsumexp(x, 1)[:, 2:]  # fmt: skip  # noqa: E501


def _with_offsets() -> Program:
    small, large = free_sequences()
    firsts = torch.tensor([3, 0]), torch.tensor([1, 7, 2])
    return OffsetRotary(), (*small, firsts[0]), (*large, firsts[1])


def _with_labels() -> Program:
    small, large = free_sequences()
    labels = [torch.randint(0, 5, x.shape[:2]) for x in (*small, *large)]
    for row in labels:
        row[:, -2:] = -100
    return MaskedLoss(), (*small, labels[0]), (*large, labels[1])


def _free(kind: type[nn.Module]) -> Callable[[], Program]:
    return lambda: (kind(), *free_sequences())


def _fixed(kind: type[nn.Module]) -> Callable[[], Program]:
    return lambda: (kind(), *sequences())


PROGRAMS: dict[str, Callable[[], Program]] = {
    "alibi": _free(LinearBias),
    "bucket_bias": _free(BucketBias),
    "offset_rotary": _with_offsets,
    "spectral_mixer": _free(SpectralMixer),
    "fnet": _free(FourierMixer),
    "s4d": _fixed(DiagonalStates),
    "dilated_gru": _fixed(DilatedRecurrence),
    "peephole_lstm": _fixed(RecurrentLoop),
    "moe_topk": _free(RoutedExperts),
    "masked_loss": _with_labels,
    "windowed_norm": _free(WindowedNorm),
}
