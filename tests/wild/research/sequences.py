"""Models of sequences: state spaces, recurrences, convolutions and attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tests.wild.research.inputs import Program, sequences, tokens


class SelectiveStateSpace(nn.Module):
    """A selective state space layer (Mamba), scanned step by step."""

    def __init__(self, width: int = 8, state: int = 4):
        super().__init__()
        self.enter = nn.Linear(width, 2 * width)
        self.conv = nn.Conv1d(width, width, 3, padding=2, groups=width)
        self.select = nn.Linear(width, 2 * state + width)
        self.A_log = nn.Parameter(torch.rand(width, state))
        self.D = nn.Parameter(torch.ones(width))
        self.leave = nn.Linear(width, width)
        self.state = state

    def forward(self, x: Any) -> Any:
        length, width = x.shape[1], x.shape[2]
        u, gate = self.enter(x).chunk(2, -1)
        u = functional.silu(self.conv(u.transpose(1, 2))[..., :length].transpose(1, 2))
        parts = self.select(u).split([self.state, self.state, width], -1)
        b, c, step = parts[0], parts[1], functional.softplus(parts[2])
        decay = torch.exp(step.unsqueeze(-1) * -torch.exp(self.A_log))
        enter = (step * u).unsqueeze(-1) * b.unsqueeze(2)
        h, outputs = torch.zeros_like(enter[:, 0]), []
        for t in range(length):
            h = decay[:, t] * h + enter[:, t]
            outputs.append((h * c[:, t].unsqueeze(1)).sum(-1))
        y = torch.stack(outputs, 1) + u * self.D
        return self.leave(y * functional.silu(gate))


class TimeMixing(nn.Module):
    """Time mixing and channel mixing of RWKV, with a decay for each channel."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix = nn.Parameter(torch.rand(3, width))
        self.decay = nn.Parameter(torch.rand(width))
        self.bonus = nn.Parameter(torch.rand(width))
        self.key, self.value = nn.Linear(width, width), nn.Linear(width, width)
        self.receive, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 16), nn.Linear(16, width)

    def attend(self, x: Any) -> Any:
        before = functional.pad(x, (0, 0, 1, -1))
        k, v, r = (
            layer(x * m + before * (1 - m))
            for layer, m in zip(
                (self.key, self.value, self.receive), self.mix, strict=True
            )
        )
        top, low = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0])
        outputs = []
        for t in range(x.shape[1]):
            now = torch.exp(self.bonus + k[:, t])
            outputs.append((top + now * v[:, t]) / (low + now + 1e-6))
            decay = torch.exp(-torch.exp(self.decay))
            top = decay * top + torch.exp(k[:, t]) * v[:, t]
            low = decay * low + torch.exp(k[:, t])
        return self.out(torch.sigmoid(r) * torch.stack(outputs, 1))

    def forward(self, x: Any) -> Any:
        x = x + self.attend(self.norm(x))
        return x + self.down(torch.relu(self.up(self.norm2(x))) ** 2)


class ExponentialMemory(nn.Module):
    """The scalar cell of xLSTM: exponential gates with a running maximum."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.gates = nn.Linear(width, 4 * width)
        self.recur = nn.Parameter(torch.randn(width, 4 * width) * 0.1)

    def forward(self, x: Any) -> Any:
        h = c = n = m = torch.zeros_like(x[:, 0])
        outputs = []
        for t in range(x.shape[1]):
            i, f, z, o = (self.gates(x[:, t]) + h @ self.recur).chunk(4, -1)
            f = functional.logsigmoid(f)
            highest = torch.maximum(f + m, i)
            i, f = torch.exp(i - highest), torch.exp(f + m - highest)
            c, n, m = f * c + i * torch.tanh(z), f * n + i, highest
            h = torch.sigmoid(o) * c / n
            outputs.append(h)
        return torch.stack(outputs, 1)


class MatrixMemory(nn.Module):
    """Linear attention with a matrix state and the delta rule."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.beta = nn.Linear(width, 1)

    def forward(self, x: Any) -> Any:
        q, k, v = self.qkv(x).chunk(3, -1)
        k, beta = functional.normalize(k, dim=-1), torch.sigmoid(self.beta(x))
        memory = x.new_zeros(x.shape[0], x.shape[2], x.shape[2])
        outputs = []
        for t in range(x.shape[1]):
            old = torch.einsum("bij,bj->bi", memory, k[:, t])
            change = beta[:, t] * (v[:, t] - old)
            memory = memory + change.unsqueeze(-1) * k[:, t].unsqueeze(1)
            outputs.append(torch.einsum("bij,bj->bi", memory, q[:, t]))
        return torch.stack(outputs, 1)


class Retention(nn.Module):
    """Retention: attention without softmax whose scores decay with distance."""

    def __init__(self, width: int = 8, heads: int = 2):
        super().__init__()
        self.qkv, self.heads = nn.Linear(width, 3 * width), heads
        self.norm = nn.GroupNorm(heads, width)
        rates = torch.log(1 - 2.0 ** (-2 - torch.arange(heads).float()))
        self.rates: Any = nn.Buffer(rates)

    def forward(self, x: Any) -> Any:
        b, length, width = x.shape
        q, k, v = (
            y.view(b, length, self.heads, -1).transpose(1, 2)
            for y in self.qkv(x).chunk(3, -1)
        )
        steps = torch.arange(length, device=x.device)
        distance = (steps[:, None] - steps[None]).float()
        decay = torch.exp(self.rates[:, None, None] * distance)
        decay = decay.masked_fill(distance < 0, 0.0)
        y = ((q @ k.transpose(-1, -2)) * decay) @ v
        y = y.transpose(1, 2).reshape(b * length, width)
        return self.norm(y).view(b, length, width)


class CausalStack(nn.Module):
    """Gated dilated causal convolutions (WaveNet) with skip connections."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.enter = nn.Conv1d(8, width, 1)
        self.dilated = nn.ModuleList(
            nn.Conv1d(width, 2 * width, 2, dilation=2**k) for k in range(3)
        )
        self.skips = nn.ModuleList(nn.Conv1d(width, 12, 1) for _ in range(3))
        self.leave = nn.Conv1d(12, 4, 1)

    def forward(self, x: Any) -> Any:
        x = self.enter(x.transpose(1, 2))
        total: Any = 0
        layers: Any = zip(self.dilated, self.skips, strict=True)
        for conv, skip in layers:
            filtered, gate = conv(functional.pad(x, (conv.dilation[0], 0))).chunk(2, 1)
            y = torch.tanh(filtered) * torch.sigmoid(gate)
            total, x = total + skip(y), x + y
        return self.leave(torch.relu(total))


class TemporalBlock(nn.Module):
    """A block of a temporal convolution network with weight normalization."""

    def __init__(self) -> None:
        super().__init__()
        norm = torch.nn.utils.parametrizations.weight_norm
        self.first = norm(nn.Conv1d(8, 12, 3, padding=4, dilation=2))
        self.second = norm(nn.Conv1d(12, 12, 3, padding=4, dilation=2))
        self.shortcut = nn.Conv1d(8, 12, 1)

    def forward(self, x: Any) -> Any:
        x = x.transpose(1, 2)
        y = torch.relu(self.first(x)[..., :-4])
        y = torch.relu(self.second(y)[..., :-4])
        return torch.relu(y + self.shortcut(x))


class SpeechRecognizer(nn.Module):
    """Convolutions, a bidirectional GRU, and log probabilities for CTC."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.rnn = nn.GRU(16, 8, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(16, 11)

    def forward(self, x: Any) -> Any:
        y = functional.hardtanh(self.norm(self.conv(x.unsqueeze(1))), 0, 20)
        y, _ = self.rnn(y.permute(0, 2, 1, 3).flatten(2))
        return functional.log_softmax(self.head(y), -1)


class Experts(nn.Module):
    """A mixture of experts with the two best of four for each token."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.router = nn.Linear(width, 4, bias=False)
        self.up = nn.Parameter(torch.randn(4, width, 16) * 0.3)
        self.down = nn.Parameter(torch.randn(4, 16, width) * 0.3)

    def forward(self, x: Any) -> tuple[Any, Any]:
        shares = self.router(x).softmax(-1)
        best, index = shares.topk(2, -1)
        best = best / best.sum(-1, keepdim=True)
        gates = torch.zeros_like(shares).scatter(-1, index, best)
        hidden = functional.gelu(torch.einsum("bld,edh->bleh", x, self.up))
        y = torch.einsum("bleh,ehd,ble->bld", hidden, self.down, gates)
        return y, shares.mean((0, 1))


class SwitchLayer(nn.Module):
    """A mixture of experts that runs each expert on its own tokens."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.router = nn.Linear(width, 3)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(3))

    def forward(self, x: Any) -> Any:
        flat = x.flatten(0, 1)
        share, index = self.router(flat).softmax(-1).max(-1)
        y = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            y = y + expert(flat) * (share * (index == number)).unsqueeze(-1)
        return y.view_as(x)


class SequenceTagger(nn.Module):
    """An LSTM tagger over words, with the Viterbi scores of its best path."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 8, padding_idx=0)
        self.rnn = nn.LSTM(8, 6, batch_first=True, bidirectional=True)
        self.head = nn.Linear(12, 5)
        self.transitions = nn.Parameter(torch.randn(5, 5))

    def forward(self, ids: Any) -> Any:
        scores = self.head(self.rnn(self.words(ids))[0])
        best = scores[:, 0]
        for t in range(1, scores.shape[1]):
            best = (best.unsqueeze(2) + self.transitions).amax(1) + scores[:, t]
        return best.logsumexp(-1)


class PointerNetwork(nn.Module):
    """Additive attention that points at positions of the input, three times."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.LSTM(8, 8, batch_first=True)
        self.cell = nn.LSTMCell(8, 8)
        self.of_input, self.of_state = nn.Linear(8, 8), nn.Linear(8, 8)
        self.score = nn.Parameter(torch.randn(8))

    def forward(self, x: Any) -> Any:
        encoded, (h, c) = self.encode(x)
        h, c, y = h[0], c[0], x.mean(1)
        results = []
        for _ in range(3):
            h, c = self.cell(y, (h, c))
            mixed = torch.tanh(self.of_input(encoded) + self.of_state(h).unsqueeze(1))
            share = (mixed @ self.score).softmax(-1)
            y = torch.bmm(share.unsqueeze(1), x).squeeze(1)
            results.append(share)
        return torch.stack(results, 1)


class ForecastingBlocks(nn.Module):
    """N-BEATS: blocks that subtract their backcast and add their forecast."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 16))
            for _ in range(3)
        )

    def forward(self, x: Any) -> Any:
        forecast = x.new_zeros(x.shape[0], 4)
        for block in self.blocks:
            backcast, step = block(x).split([12, 4], -1)
            x, forecast = x - backcast, forecast + step
        return forecast


def _of_sequences(kind: type[nn.Module]) -> Callable[[], Program]:
    return lambda: (kind(), *sequences())


PROGRAMS: dict[str, Callable[[], Program]] = {
    "mamba": _of_sequences(SelectiveStateSpace),
    "rwkv": _of_sequences(TimeMixing),
    "xlstm": _of_sequences(ExponentialMemory),
    "delta_rule": _of_sequences(MatrixMemory),
    "retention": _of_sequences(Retention),
    "wavenet": _of_sequences(CausalStack),
    "tcn": _of_sequences(TemporalBlock),
    "moe_dense": _of_sequences(Experts),
    "moe_switch": _of_sequences(SwitchLayer),
    "pointer": _of_sequences(PointerNetwork),
    "crf_tagger": lambda: (SequenceTagger(), *tokens(50)),
    "ctc_asr": lambda: (
        SpeechRecognizer(),
        (torch.randn(2, 20, 8),),
        (torch.randn(3, 26, 8),),
    ),
    "nbeats": lambda: (
        ForecastingBlocks(),
        (torch.randn(2, 12),),
        (torch.randn(5, 12),),
    ),
}
