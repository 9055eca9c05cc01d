"""Speech and audio: front ends, streams and vocoders."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tests.wild.research.inputs import Program, free_sequences


class MaskedSpectrum(nn.Module):
    """Speech enhancement: a mask on the complex spectrum, then the inverse."""

    def __init__(self, points: int = 32, hop: int = 8):
        super().__init__()
        self.points, self.hop = points, hop
        self.register_buffer("window", torch.hann_window(points))
        self.rnn = nn.GRU(points // 2 + 1, 12, batch_first=True)
        self.mask = nn.Linear(12, 2 * (points // 2 + 1))

    def forward(self, x: Any) -> Any:
        spectrum = torch.stft(
            x, self.points, self.hop, window=self.window, return_complex=True
        )
        level = torch.log1p(spectrum.abs()).transpose(1, 2)
        y, _ = self.rnn(level)
        real, imaginary = self.mask(y).transpose(1, 2).tanh().chunk(2, dim=1)
        changed = spectrum * torch.complex(real, imaginary)
        return torch.istft(
            changed, self.points, self.hop, window=self.window, length=x.size(-1)
        )


class FilterbankNet(nn.Module):
    """A mel front end in plain PyTorch: frames, Hann, rfft, triangles, decibels."""

    def __init__(self, rate: int = 800, bands: int = 6, points: int = 64):
        super().__init__()
        self.points = points
        self.register_buffer("bank", self.triangles(rate, bands, points // 2 + 1))
        self.norm = nn.BatchNorm1d(bands)
        self.layers = nn.Sequential(
            nn.Conv1d(bands, 8, 5, dilation=2), nn.ReLU(), nn.Conv1d(8, 8, 3)
        )
        self.last = nn.Linear(16, 4)

    @staticmethod
    def triangles(rate: int, bands: int, bins: int) -> Any:
        top = 2595.0 * math.log10(1.0 + rate / 2 / 700.0)
        marks = 700.0 * (10.0 ** (torch.linspace(0.0, top, bands + 2) / 2595.0) - 1.0)
        slopes = marks.unsqueeze(0) - torch.linspace(0, rate // 2, bins).unsqueeze(1)
        gaps = marks[1:] - marks[:-1]
        down, up = -slopes[:, :-2] / gaps[:-1], slopes[:, 2:] / gaps[1:]
        return torch.clamp(torch.min(down, up), min=0.0)

    def forward(self, x: Any) -> Any:
        x = torch.cat([x[:, :1], x[:, 1:] - 0.97 * x[:, :-1]], dim=1)
        frames = x.unfold(-1, self.points, self.points // 4)
        frames = frames * torch.hamming_window(self.points, periodic=False)
        power = torch.fft.rfft(frames).abs().square() / self.points
        decibels = 10.0 * torch.log10(torch.clamp(power @ self.bank, min=1e-10))
        decibels = torch.maximum(
            decibels, decibels.amax(dim=(-2, -1), keepdim=True) - 80.0
        )
        y = self.layers(self.norm(decibels.transpose(1, 2)))
        pooled = torch.cat([y.mean(-1), y.std(-1)], dim=1)
        return functional.normalize(self.last(pooled))


class SincFilters(nn.Module):
    """SincNet: band-pass filters computed from two learned frequencies each."""

    def __init__(self, filters: int = 4, taps: int = 15, rate: float = 100.0):
        super().__init__()
        self.rate, self.taps = rate, taps
        self.low = nn.Parameter(torch.linspace(2, 30, filters).view(-1, 1))
        self.band = nn.Parameter(torch.full((filters, 1), 5.0))
        n = torch.linspace(0, taps / 2 - 1, steps=taps // 2)
        self.register_buffer("window", 0.54 - 0.46 * torch.cos(2 * math.pi * n / taps))
        half = 2 * math.pi * torch.arange(-(taps - 1) / 2.0, 0).view(1, -1) / rate
        self.register_buffer("comb", half)
        self.norm, self.last = nn.LayerNorm(filters), nn.Linear(filters, 3)

    def forward(self, x: Any) -> Any:
        low = 1.0 + torch.abs(self.low)
        high = torch.clamp(low + 1.0 + torch.abs(self.band), 1.0, self.rate / 2)
        band = (high - low)[:, 0]
        down, up = torch.matmul(low, self.comb), torch.matmul(high, self.comb)
        left = ((torch.sin(up) - torch.sin(down)) / (self.comb / 2)) * self.window
        middle = 2 * band.view(-1, 1)
        filters = torch.cat([left, middle, torch.flip(left, dims=[1])], dim=1)
        filters = (filters / (2 * band[:, None])).view(-1, 1, self.taps)
        y = functional.conv1d(x.unsqueeze(1), filters, padding=self.taps // 2)
        y = functional.max_pool1d(torch.abs(y), 3)
        return self.last(self.norm(y.mean(-1)))


class StreamingConv(nn.Module):
    """One step of a causal network: caches of past frames come in and go out."""

    def __init__(self, width: int = 6, depth: int = 3, taps: int = 3):
        super().__init__()
        self.taps = taps
        self.layers = nn.ModuleList(
            nn.Conv1d(width, width, taps, dilation=2**k, groups=2) for k in range(depth)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.gru = nn.GRUCell(width, width)

    def forward(self, x: Any, cache: Any, state: Any) -> Any:
        caches, start = [], 0
        for layer, norm in zip(self.layers, self.norms, strict=True):
            past = (self.taps - 1) * layer.dilation[0]
            y = torch.cat([cache[:, :, start : start + past], x], dim=-1)
            caches.append(y[:, :, -past:])
            start += past
            y = norm(layer(y).transpose(1, 2)).transpose(1, 2)
            x = x + functional.gelu(y, approximate="tanh")
        state = self.gru(x.mean(-1), state)
        return x * state.unsqueeze(-1), torch.cat(caches, dim=-1), state


class AutoregressiveVocoder(nn.Module):
    """WaveRNN with the best sample instead of a drawn one: a loop of GRU cells."""

    def __init__(self, width: int = 6, levels: int = 16):
        super().__init__()
        self.levels = levels
        self.upsample = nn.ConvTranspose1d(width, width, 4, stride=2, padding=1)
        self.cell = nn.GRUCell(width + 1, 12)
        self.hidden, self.out = nn.Linear(12, 12), nn.Linear(12, levels)

    def forward(self, mel: Any) -> Any:
        frames = self.upsample(mel).transpose(1, 2)
        b = frames.size(0)
        state, sample = frames.new_zeros(b, 12), frames.new_zeros(b, 1)
        samples, scores = [], []
        for frame in frames.unbind(1):
            state = self.cell(torch.cat([frame, sample], dim=-1), state)
            logits = self.out(functional.relu(self.hidden(state)))
            code = logits.argmax(-1, keepdim=True)
            y = 2 * code.float() / (self.levels - 1.0) - 1.0
            sample = torch.sign(y) / 255 * ((1 + 255) ** torch.abs(y) - 1)
            samples.append(sample)
            scores.append(logits)
        return torch.cat(samples, 1), torch.stack(scores, 1)


class SpeakerEmbedding(nn.Module):
    """ECAPA: dilated blocks that split channels, and attentive statistics."""

    def __init__(self, bands: int = 8, width: int = 12):
        super().__init__()
        self.first = nn.Conv1d(bands, width, 5, padding="same", padding_mode="reflect")
        self.parts = nn.ModuleList(
            nn.Conv1d(4, 4, 3, padding=2, dilation=2) for _ in "ab"
        )
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool1d(1),
            nn.Conv1d(width, 4, 1),
            nn.ReLU(),
            nn.Conv1d(4, width, 1),
            nn.Sigmoid(),
        )
        self.attend = nn.Sequential(
            nn.Conv1d(3 * width, 6, 1), nn.Tanh(), nn.Conv1d(6, width, 1)
        )
        self.last = nn.Linear(2 * width, 5)

    def forward(self, x: Any) -> Any:
        x = functional.relu(self.first(x))
        pieces = list(torch.tensor_split(x, 3, dim=1))
        for k, layer in enumerate(self.parts, 1):
            pieces[k] = functional.relu(layer(pieces[k] + pieces[k - 1]))
        y = torch.cat(pieces, dim=1)
        x = x + y * self.squeeze(y)
        t = x.size(-1)
        spread = torch.sqrt(torch.var(x, dim=2, keepdim=True).clamp(min=1e-4))
        context = torch.cat(
            (x, x.mean(2, keepdim=True).repeat(1, 1, t), spread.repeat(1, 1, t)), 1
        )
        share = self.attend(context).softmax(2)
        mean = torch.sum(x * share, dim=2)
        deviation = torch.sqrt(
            (torch.sum(x**2 * share, dim=2) - mean**2).clamp(min=1e-4)
        )
        return self.last(torch.cat((mean, deviation), 1))


class Separator(nn.Module):
    """Conv-TasNet: a learned basis, masks for two speakers, overlapping frames."""

    def __init__(self, filters: int = 8, taps: int = 8):
        super().__init__()
        self.taps = taps
        self.encode = nn.Conv1d(1, filters, taps, stride=taps // 2, bias=False)
        self.norm = nn.GroupNorm(1, filters, eps=1e-8)
        self.mix = nn.Sequential(
            nn.Conv1d(filters, 12, 1),
            nn.PReLU(),
            nn.GroupNorm(1, 12),
            nn.Conv1d(12, 12, 3, padding=4, dilation=4, groups=12),
            nn.PReLU(),
            nn.Conv1d(12, 2 * filters, 1),
        )
        self.basis = nn.Linear(filters, taps, bias=False)

    def forward(self, x: Any) -> Any:
        step = self.taps // 2
        rest = step - (x.size(-1) + step) % self.taps
        padded = functional.pad(x.unsqueeze(1), (step, rest + step))
        y = functional.relu(self.encode(padded))
        masks = self.mix(self.norm(y)).view(x.size(0), 2, -1, y.size(-1)).relu()
        frames = self.basis((masks * y.unsqueeze(1)).transpose(2, 3))
        b, s, n, _ = frames.shape
        columns = frames.reshape(b * s, n, self.taps).transpose(1, 2)
        size = (n - 1) * step + self.taps
        sound = functional.fold(columns, (1, size), (1, self.taps), stride=(1, step))
        return sound.view(b, s, size)[..., step : step + x.size(-1)]


class PackedTagger(nn.Module):
    """A bidirectional LSTM on packed sequences, with the mean over true lengths."""

    def __init__(self, vocabulary: int = 20):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 6, padding_idx=0)
        self.rnn = nn.LSTM(6, 5, batch_first=True, bidirectional=True)
        self.last = nn.Bilinear(10, 10, 3)

    def forward(self, ids: Any, lengths: Any) -> Any:
        packed = pack_padded_sequence(
            self.embed(ids), lengths, batch_first=True, enforce_sorted=False
        )
        y, (state, _) = self.rnn(packed)
        y, sizes = pad_packed_sequence(y, batch_first=True, total_length=ids.size(1))
        mask = torch.arange(y.size(1))[None, :] < sizes[:, None]
        mean = (y * mask.unsqueeze(-1)).sum(1) / sizes.unsqueeze(-1)
        final = torch.cat([state[0], state[1]], dim=-1)
        return self.last(mean, final), y


class Reverberation(nn.Module):
    """Differentiable signal processing: oscillators and a convolution by FFT."""

    def __init__(self, width: int = 6, harmonics: int = 4, hop: int = 8):
        super().__init__()
        self.hop, self.harmonics = hop, harmonics
        self.pitch, self.amplitude = nn.Linear(width, 1), nn.Linear(
            width, harmonics + 1
        )
        self.tail = nn.Parameter(torch.randn(40) * torch.exp(-torch.arange(40) / 8))

    def upsample(self, x: Any) -> Any:
        y = functional.interpolate(
            x.transpose(1, 2), scale_factor=self.hop, mode="linear", align_corners=True
        )
        return y.transpose(1, 2)

    def forward(self, x: Any) -> Any:
        pitch = self.upsample(20 + 20 * torch.sigmoid(self.pitch(x)))
        levels = 2 * torch.sigmoid(self.amplitude(x)) ** math.log(10) + 1e-7
        total, shares = levels[..., :1], levels[..., 1:]
        numbers = torch.arange(1, self.harmonics + 1).to(pitch)
        audible = (self.upsample(self.pitch(x)) * numbers < 3.0).float() + 1e-4
        shares = self.upsample(shares) * audible
        shares = shares / shares.sum(-1, keepdim=True) * self.upsample(total)
        phase = torch.cumsum(2 * math.pi * pitch / 400, dim=1)
        sound = (torch.sin(phase * numbers) * shares).sum(-1)
        n = sound.size(-1)
        tail = functional.pad(self.tail, (0, n - 40)) if n > 40 else self.tail[:n]
        spectrum = torch.fft.rfft(functional.pad(sound, (0, n))) * torch.fft.rfft(
            functional.pad(tail, (0, n))
        )
        return torch.fft.irfft(spectrum)[..., :n] + sound


def _sound(kind: Any, *lengths: int) -> Any:
    def build() -> Program:
        small, large = ((torch.randn(k + 2, n),) for k, n in enumerate(lengths))
        return kind(), small, large

    return build


def _stream() -> Program:
    def inputs(b: int, t: int) -> tuple[Any, ...]:
        return torch.randn(b, 6, t), torch.randn(b, 6, 14), torch.randn(b, 6)

    return StreamingConv(), inputs(2, 4), inputs(3, 9)


def _lengths() -> Program:
    def inputs(*lengths: int) -> tuple[Any, ...]:
        ids = torch.randint(1, 20, (len(lengths), max(lengths)))
        return ids, torch.tensor(lengths)

    return PackedTagger(), inputs(4, 6, 2), inputs(3, 7, 5, 1)


def _mel(kind: Any) -> Any:
    def build() -> Program:
        return kind(), (torch.randn(2, 8, 12),), (torch.randn(3, 8, 17),)

    return build


PROGRAMS = {
    "masked_spectrum": _sound(MaskedSpectrum, 80, 120),
    "filterbank_net": _sound(FilterbankNet, 320, 400),
    "sinc_filters": _sound(SincFilters, 60, 75),
    "streaming_conv": _stream,
    "autoregressive_vocoder": lambda: (
        AutoregressiveVocoder(),
        (torch.randn(2, 6, 4),),
        (torch.randn(3, 6, 4),),
    ),
    "speaker_embedding": _mel(SpeakerEmbedding),
    "separator": _sound(Separator, 60, 77),
    "packed_tagger": _lengths,
    "reverberation": lambda: (Reverberation(), *free_sequences(6)),
}
