"""Models of applied work: images, speech, tables, forecasts, as projects write them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.distributions import Categorical, MixtureSameFamily, Normal
from torch.nn import functional
from torch.nn.utils import parametrizations, rnn

from tests.wild.research.inputs import Program, free_sequences, pictures, sequences


class AttentionUNet(nn.Module):
    """A diffusion U-Net: time embedding, group norms, attention in the middle."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(width, 16), nn.SiLU(), nn.Linear(16, 16))
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.Conv2d(width, 16, 3, stride=2, padding=1)
        self.norms = nn.ModuleList(nn.GroupNorm(4, 16) for _ in range(2))
        self.qkv, self.out = nn.Conv2d(16, 48, 1), nn.Conv2d(16, 16, 1)
        self.up = nn.ConvTranspose2d(16, width, 4, stride=2, padding=1)
        self.leave = nn.Conv2d(2 * width, 3, 3, padding=1)
        self.width = width

    def embedding(self, steps: Any) -> Any:
        half = self.width // 2
        rates = torch.exp(
            -math.log(1e4) * torch.arange(half, device=steps.device) / half
        )
        angles = steps[:, None].float() * rates[None]
        return self.time(torch.cat([angles.sin(), angles.cos()], dim=-1))

    def forward(self, x: Any, steps: Any) -> Any:
        skip = self.enter(x)
        y = self.norms[0](self.down(functional.silu(skip)))
        y = functional.silu(y + self.embedding(steps)[:, :, None, None])
        b, c, h, w = y.shape
        q, k, v = self.qkv(self.norms[1](y)).view(b, 3, 2, c // 2, h * w).unbind(1)
        share = torch.einsum("bhcn,bhcm->bhnm", q * (c // 2) ** -0.5, k).softmax(-1)
        mixed = torch.einsum("bhnm,bhcm->bhcn", share, v).reshape(b, c, h, w)
        y = self.up(y + self.out(mixed))
        if y.shape[-2:] != skip.shape[-2:]:
            y = functional.interpolate(y, size=skip.shape[-2:], mode="nearest")
        return self.leave(torch.cat([y, skip], dim=1))


class Conformer(nn.Module):
    """A conformer block: half feeds, relative attention, a gated convolution."""

    def __init__(self, width: int = 8, heads: int = 2):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.feeds = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 16), nn.SiLU(), nn.Linear(16, width))  # fmt: skip  # noqa: E501
            for _ in range(2)
        )
        self.norm, self.qkv = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.position = nn.Linear(width, width, bias=False)
        self.u = nn.Parameter(torch.randn(heads, self.size) * 0.1)
        self.v = nn.Parameter(torch.randn(heads, self.size) * 0.1)
        self.convolution = nn.Sequential(
            nn.Conv1d(width, 2 * width, 1), nn.GLU(dim=1),
            nn.Conv1d(width, width, 3, padding=1, groups=width),
            nn.BatchNorm1d(width), nn.SiLU(), nn.Conv1d(width, width, 1),
        )  # fmt: skip
        self.last = nn.LayerNorm(width)

    def positions(self, x: Any) -> Any:
        steps, half = x.size(1), x.size(2) // 2
        distance = torch.arange(steps - 1, -steps, -1, dtype=x.dtype)
        rates = 1e4 ** (-torch.arange(half, dtype=x.dtype) / half)
        angles = torch.outer(distance, rates)
        table = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
        return self.position(table).view(-1, self.heads, self.size)

    def attend(self, x: Any) -> Any:
        b, t, _ = x.size()
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, self.size).unbind(2)
        content = torch.einsum("bihd,bjhd->bhij", q + self.u, k)
        shifted = torch.einsum("bihd,jhd->bhij", q + self.v, self.positions(x))
        shifted = functional.pad(shifted, (1, 0)).view(b, self.heads, -1, t)
        shifted = shifted[:, :, 1:].reshape(b, self.heads, t, -1)[..., :t]
        share = ((content + shifted) / math.sqrt(self.size)).softmax(-1)
        return torch.einsum("bhij,bjhd->bihd", share, v).reshape(b, t, -1)

    def forward(self, x: Any) -> Any:
        x = x + 0.5 * self.feeds[0](x)
        x = x + self.attend(self.norm(x))
        x = x + self.convolution(x.transpose(1, 2)).transpose(1, 2)
        return self.last(x + 0.5 * self.feeds[1](x))


class MixtureRnn(nn.Module):
    """A world model: an LSTM whose output is a mixture, by torch.distributions."""

    def __init__(self, width: int = 8, parts: int = 3):
        super().__init__()
        self.parts = parts
        self.rnn = nn.LSTM(width, 12, num_layers=2, batch_first=True)
        self.head = nn.Linear(12, 3 * parts)

    def forward(self, x: Any) -> Any:
        y, (h, _) = self.rnn(x)
        logits, mean, log_scale = self.head(y).chunk(3, dim=-1)
        normal = Normal(mean, log_scale.exp() + 1e-4, validate_args=False)
        mixture = MixtureSameFamily(
            Categorical(logits=logits, validate_args=False), normal, validate_args=False
        )
        return -mixture.log_prob(x[..., 0]).mean(1), mixture.mean, h[-1]


class Performer(nn.Module):
    """Causal attention by positive random features and running sums (FAVOR+)."""

    def __init__(self, width: int = 8, heads: int = 2, features: int = 6):
        super().__init__()
        self.heads, size = heads, width // heads
        self.register_buffer("projection", torch.randn(features, size))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def features(self, x: Any) -> Any:
        x = x * x.shape[-1] ** -0.25
        projected = x @ self.projection.t() - x.square().sum(-1, keepdim=True) / 2
        highest = projected.amax(dim=(-1, -2), keepdim=True).detach()
        return torch.exp(projected - highest) + 1e-6

    def forward(self, x: Any) -> Any:
        b, t, _ = x.shape
        parts = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (p.reshape(b, t, self.heads, -1).transpose(1, 2) for p in parts)
        q, k = self.features(q), self.features(k)
        states = (k.unsqueeze(-1) * v.unsqueeze(-2)).cumsum(dim=2)
        norms = (q * k.cumsum(dim=2)).sum(-1, keepdim=True).clamp_min(1e-6)
        y = (q.unsqueeze(-2) @ states).squeeze(-2) / norms
        return self.out(y.transpose(1, 2).reshape(b, t, -1))


class CenterDetector(nn.Module):
    """A detector of centers: peaks of a heat map, with sizes gathered at them."""

    def __init__(self, kinds: int = 3):
        super().__init__()
        self.kinds = kinds
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.LeakyReLU(0.1)
        )
        self.heat, self.size = nn.Conv2d(8, kinds, 1), nn.Conv2d(8, 2, 1)

    def forward(self, x: Any) -> tuple[Any, Any, Any]:
        y = self.body(x)
        heat = self.heat(y).sigmoid()
        peaks = heat * (functional.max_pool2d(heat, 3, 1, 1) == heat).float()
        b, _, h, w = heat.shape
        scores, index = peaks.view(b, -1).topk(4)
        kinds, places = index // (h * w), index % (h * w)
        rows, columns = torch.div(places, w, rounding_mode="floor"), places % w
        sizes = self.size(y).flatten(2).gather(2, places[:, None].expand(-1, 2, -1))
        center = torch.stack([columns, rows], dim=1).float()
        return scores, kinds, torch.cat([center - sizes / 2, center + sizes / 2], 1)


class SqueezeResNext(nn.Module):
    """Grouped residual bottlenecks with squeeze and excitation."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 2, 1), nn.BatchNorm2d(width))
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(width, width, 1, bias=False), nn.BatchNorm2d(width),
                nn.ReLU(True),
                nn.Conv2d(width, width, 3, padding=1, groups=4, bias=False),
                nn.BatchNorm2d(width), nn.Hardswish(inplace=True),
            ) for _ in range(2)
        )  # fmt: skip
        self.gates = nn.ModuleList(
            nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, 4, 1), nn.ReLU(), nn.Conv2d(4, width, 1), nn.Hardsigmoid())  # fmt: skip  # noqa: E501
            for _ in range(2)
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(width, 5))

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for block, gate in zip(self.blocks, self.gates, strict=True):
            y = block(x)
            x = functional.relu(x + y * gate(y))
        return self.head(functional.adaptive_avg_pool2d(x, (1, 1)))


class TableTransformer(nn.Module):
    """Columns of categories through a transformer, numbers beside them."""

    def __init__(self, sizes: tuple[int, ...] = (5, 3, 7), numbers: int = 4):
        super().__init__()
        starts = torch.tensor([0, *sizes[:-1]]).cumsum(0)
        self.register_buffer("starts", starts)
        self.embed = nn.Embedding(sum(sizes), 8)
        self.columns = nn.Parameter(torch.randn(len(sizes), 8) * 0.1)
        layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True)  # fmt: skip  # noqa: E501
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.BatchNorm1d(numbers)
        self.head = nn.Sequential(nn.Linear(8 * len(sizes) + numbers, 16), nn.SELU(), nn.Linear(16, 1))  # fmt: skip  # noqa: E501

    def forward(self, categories: Any, numbers: Any) -> Any:
        x = self.encoder(self.embed(categories + self.starts) + self.columns)
        return self.head(torch.cat([x.flatten(1), self.norm(numbers)], 1)).squeeze(-1)


class Siamese(nn.Module):
    """Two images through one network, compared by cosine, distance and margin."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 5, 2), nn.PReLU(8), nn.MaxPool2d(2, ceil_mode=True),
            nn.InstanceNorm2d(8, affine=True), nn.AdaptiveMaxPool2d(2), nn.Flatten(),
            nn.Linear(32, 6),
        )  # fmt: skip
        self.scale = nn.Parameter(torch.tensor(5.0))

    def forward(self, first: Any, second: Any) -> tuple[Any, Any, Any]:
        a, b = (functional.normalize(self.body(x), dim=-1) for x in (first, second))
        similarity = functional.cosine_similarity(a, b) * self.scale
        loss = functional.triplet_margin_loss(a, b, b.roll(1, 0), reduction="none")
        return similarity, functional.pairwise_distance(a, b), loss


class PackedAttention(nn.Module):
    """A GRU over packed sequences of different lengths, pooled by attention."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.rnn = nn.GRU(width, 6, bidirectional=True, batch_first=True)
        self.query = nn.Parameter(torch.randn(12))
        self.head = nn.Linear(12, 3)

    def forward(self, x: Any, lengths: Any) -> tuple[Any, Any]:
        packed = rnn.pack_padded_sequence(x, lengths, True, enforce_sorted=False)
        y, _ = rnn.pad_packed_sequence(
            self.rnn(packed)[0], batch_first=True, total_length=x.size(1)
        )
        scores = (torch.tanh(y) @ self.query) / y.size(-1) ** 0.5
        mask = torch.arange(x.size(1)).expand(x.size(0), -1) < lengths.unsqueeze(1)
        share = scores.masked_fill(~mask, float("-inf")).softmax(dim=1)
        return self.head((share.unsqueeze(-1) * y).sum(1)), share


class GatedResidual(nn.Module):
    """A gated residual network, with a context if there is one."""

    def __init__(self, width: int, out: int, context: int = 0):
        super().__init__()
        self.skip = nn.Linear(width, out) if width != out else nn.Identity()
        self.first, self.second = nn.Linear(width, out), nn.Linear(out, out)
        self.context = nn.Linear(context, out, bias=False) if context else None
        self.gate, self.norm = nn.Linear(out, 2 * out), nn.LayerNorm(out)

    def forward(self, x: Any, context: Any = None) -> Any:
        y = self.first(x)
        if self.context is not None and context is not None:
            y = y + self.context(context).unsqueeze(-2)
        y = self.second(functional.elu(y))
        return self.norm(self.skip(x) + functional.glu(self.gate(y), dim=-1))


class TemporalFusion(nn.Module):
    """A temporal fusion transformer: selected variables, an LSTM, quantiles."""

    def __init__(self, variables: int = 8, width: int = 4, kept: int = 3):
        super().__init__()
        self.embed = nn.ModuleList(nn.Linear(1, width) for _ in range(variables))
        self.select = GatedResidual(variables * width, variables, width)
        self.each = nn.ModuleList(GatedResidual(width, width) for _ in range(variables))
        self.static, self.rnn = nn.Linear(2, width), nn.LSTM(
            width, width, batch_first=True
        )
        self.attend = nn.MultiheadAttention(width, 2, batch_first=True)
        self.after, self.quantiles = GatedResidual(width, width), nn.Linear(width, 3)
        self.kept = kept

    def forward(self, x: Any, static: Any) -> tuple[Any, Any]:
        context = self.static(static)
        parts = [f(v) for f, v in zip(self.embed, x.split(1, dim=-1), strict=True)]
        weight = self.select(torch.cat(parts, -1), context).softmax(-1).unsqueeze(-2)
        parts = [f(v) for f, v in zip(self.each, parts, strict=True)]
        y = (torch.stack(parts, dim=-1) * weight).sum(-1)
        start = context.unsqueeze(0), torch.zeros_like(context).unsqueeze(0)
        y = y + self.rnn(y, start)[0]
        t = y.size(1)
        future = torch.triu(torch.ones(t, t, dtype=torch.bool), diagonal=1)
        z, share = self.attend(y, y, y, attn_mask=future)
        return self.quantiles(self.after(z + y)[:, -self.kept :]), share


class StyleGenerator(nn.Module):
    """Modulated convolutions, one kernel for each sample, with blur and noise maps."""

    def __init__(self, style: int = 6, width: int = 8):
        super().__init__()
        self.constant = nn.Parameter(torch.randn(1, width, 4, 4))
        self.map = nn.ModuleList(nn.Linear(style, style) for _ in range(2))
        self.affine = nn.Linear(style, width)
        self.kernel = nn.Parameter(torch.randn(width, width, 3, 3) * 0.2)
        self.noise = nn.Parameter(torch.randn(1, 1, 8, 8) * 0.1)
        blur = torch.tensor([1.0, 2.0, 1.0])
        self.register_buffer("blur", torch.outer(blur, blur) / 16)
        self.critic = parametrizations.spectral_norm(nn.Conv2d(width, 3, 1))

    def forward(self, z: Any) -> Any:
        z = z * torch.rsqrt(z.square().mean(1, keepdim=True) + 1e-8)
        for layer in self.map:
            z = functional.leaky_relu(layer(z), 0.2) * 2**0.5
        b = z.shape[0]
        x = self.constant.repeat(b, 1, 1, 1)
        x = functional.interpolate(
            x, scale_factor=2, mode="bilinear", align_corners=False
        )
        kernel = self.kernel[None] * (self.affine(z) + 1)[:, None, :, None, None]
        kernel = kernel * kernel.pow(2).sum((2, 3, 4), keepdim=True).add(1e-8).rsqrt()
        x = x.reshape(1, -1, 8, 8)
        x = functional.conv2d(x, kernel.flatten(0, 1), padding=1, groups=b)
        x = x.view(b, -1, 8, 8) + self.noise
        blur = self.blur[None, None].expand(x.size(1), 1, -1, -1)
        x = functional.conv2d(functional.pad(x, (1, 1, 1, 1), "reflect"), blur, groups=x.size(1))  # fmt: skip  # noqa: E501
        spread = x.var(0, unbiased=False).add(1e-8).sqrt().mean()
        return torch.tanh(self.critic(x)) + spread


class MelClassifier(nn.Module):
    """Spectrograms of a waveform through mel filters and a convolution."""

    def __init__(self, size: int = 32, bands: int = 6):
        super().__init__()
        self.size = size
        self.register_buffer("window", torch.hann_window(size))
        self.register_buffer("filters", torch.rand(bands, size // 2 + 1))
        self.body = nn.Sequential(nn.Conv1d(bands, 8, 3, padding="same"), nn.Mish(), nn.AvgPool1d(2))  # fmt: skip  # noqa: E501
        self.head = nn.Linear(16, 4)

    def forward(self, wave: Any) -> Any:
        spectrum = torch.stft(wave, self.size, self.size // 2, window=self.window, return_complex=True)  # fmt: skip  # noqa: E501
        power = spectrum.abs().pow(2)
        mel = torch.log10(torch.clamp(self.filters @ power, min=1e-6))
        mel = torch.maximum(mel, mel.amax((1, 2), keepdim=True) - 8.0)
        y = self.body((mel - mel.mean(-1, keepdim=True)) / (mel.std(-1, keepdim=True) + 1e-5))  # fmt: skip  # noqa: E501
        return self.head(torch.cat([y.mean(-1), y.amax(-1)], dim=-1))


def _unet() -> Program:
    sizes = [(torch.randn(b, 3, 16, 16), torch.arange(b) * 7) for b in (2, 3)]
    return AttentionUNet(), sizes[0], sizes[1]


def _free(kind: type[nn.Module]) -> Callable[[], Program]:
    return lambda: (kind(), *free_sequences())


def _table() -> Program:
    sizes = [(torch.randint(0, 3, (b, 3)), torch.randn(b, 4)) for b in (4, 7)]
    return TableTransformer(), sizes[0], sizes[1]


def _pairs() -> Program:
    (a,), (c,) = pictures()
    return Siamese(), (a, a.flip(3)), (c, c.flip(2))


def _packed() -> Program:
    (x,), (y,) = sequences()
    return PackedAttention(), (x, torch.tensor([4, 6])), (y, torch.tensor([6, 1, 3]))


def _forecast() -> Program:
    (x,), (y,) = free_sequences()
    return TemporalFusion(), (x, torch.randn(2, 2)), (y, torch.randn(3, 2))


PROGRAMS: dict[str, Callable[[], Program]] = {
    "attention_unet": _unet,
    "conformer": _free(Conformer),
    "mixture_rnn": _free(MixtureRnn),
    "performer": _free(Performer),
    "center_detector": lambda: (CenterDetector(), *pictures()),
    "se_resnext": lambda: (SqueezeResNext(), *pictures()),
    "tab_transformer": _table,
    "siamese": _pairs,
    "packed_attention": _packed,
    "temporal_fusion": _forecast,
    "style_generator": lambda: (StyleGenerator(), (torch.randn(2, 6),), (torch.randn(3, 6),)),  # fmt: skip  # noqa: E501
    "mel_classifier": lambda: (MelClassifier(), (torch.randn(2, 160),), (torch.randn(3, 320),)),  # fmt: skip  # noqa: E501
}
