"""PyTorch modules with tensors that are not trained: buffers and constants."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from tests.importer.roles.support import Model, made, parameter, x


def causal_mask() -> Model:
    """Return attention with a mask that it makes, and one that it keeps."""

    def forward(s: Any, x: Tensor) -> Tensor:
        n = x.shape[1]
        q, k, v = s.qkv(x).chunk(3, -1)
        scores = (q @ k.transpose(1, 2)).masked_fill(s.bias[:n, :n] == 0, float("-inf"))
        result = torch.full((n, n), torch.finfo(x.dtype).min).triu(1)
        return (scores + result).softmax(-1) @ v

    mask = nn.Buffer(torch.ones(6, 6).tril(), persistent=False)
    return made(forward, qkv=nn.Linear(4, 12), bias=mask), (x(2, 6, 4),)


def graph_convolution() -> Model:
    """Return a graph network: sums over neighbors into zeros, over their count."""

    def forward(s: Any, x: Tensor, edges: Tensor) -> Tensor:
        h = s.lin(x)
        out = torch.zeros(6, 3).index_add(0, edges[1], h[edges[0]])
        count = torch.zeros(6).index_add(0, edges[1], torch.ones(8))
        return out / count.clamp(min=1)[:, None] + s.bias

    net = made(forward, lin=nn.Linear(4, 3, bias=False), bias=parameter(3))
    return net, (x(6, 4), torch.randint(0, 6, (2, 8)))


def rotary() -> Model:
    """Return rotary positions of a buffer of frequencies."""

    def forward(s: Any, x: Tensor) -> Tensor:
        angles = torch.outer(torch.arange(x.shape[1]).float(), s.inv_freq)
        angles = torch.cat([angles, angles], -1)
        a, b = x.chunk(2, -1)
        return s.w(x * angles.cos() + torch.cat([-b, a], -1) * angles.sin())

    inv_freq = nn.Buffer(1.0 / 10000 ** (torch.arange(0, 8, 2) / 8), persistent=False)
    return made(forward, inv_freq=inv_freq, w=nn.Linear(8, 8)), (x(2, 5, 8),)


def sinusoid() -> Model:
    """Return positions that are computed from numbers alone."""

    def forward(s: Any, x: Tensor) -> Tensor:
        rates = torch.exp(torch.arange(0, 4, 2).float() * -2.3)
        angles = torch.arange(5).float()[:, None] * rates
        return s.w(x + torch.cat([angles.sin(), angles.cos()], -1))

    return made(forward, w=nn.Linear(4, 4)), (x(2, 5, 4),)


def timestep() -> Model:
    """Return what diffusion models make of a time."""

    def forward(s: Any, t: Tensor) -> Tensor:
        rates = torch.exp(-9.2 * torch.arange(64, dtype=torch.float32) / 64)
        angles = t[:, None].float() * rates[None]
        return s.w(torch.cat([angles.cos(), angles.sin()], -1))

    return made(forward, w=nn.Linear(128, 4)), (torch.tensor([3, 17]),)


def normalized_image() -> Model:
    """Return a convolution of an image whose mean and deviation are buffers."""
    mean = nn.Buffer(torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1))
    std = nn.Buffer(torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1))
    forward = lambda s, x: s.conv((x - s.mean) / s.std)  # noqa: E731
    return made(forward, mean=mean, std=std, conv=nn.Conv2d(3, 4, 3)), (x(2, 3, 8, 8),)


def anchors() -> Model:
    """Return boxes decoded around fixed anchors, as detectors have them."""

    def forward(s: Any, x: Tensor) -> Tensor:
        deltas = s.head(x)
        sizes = s.anchors[:, 2:] * deltas[..., 2:].exp()
        return torch.cat([s.anchors[:, :2] + deltas[..., :2], sizes], -1)

    boxes = nn.Buffer(torch.rand(5, 4) * 10, persistent=False)
    return made(forward, anchors=boxes, head=nn.Linear(6, 4)), (x(2, 5, 6),)


def windowed() -> Model:
    """Return a filter bank: frames times a window that is a buffer."""
    forward = lambda s, x: s.w(x.unfold(1, 8, 4) * s.window)  # noqa: E731
    window = nn.Buffer(torch.hann_window(8))
    return made(forward, window=window, w=nn.Linear(8, 3)), (x(2, 32),)


def one_hot() -> Model:
    """Return a one-hot code times a matrix."""

    def forward(s: Any, x: Tensor) -> Tensor:
        return F.one_hot(x, 6).float() @ s.weight

    return made(forward, weight=parameter(6, 3)), (torch.tensor([[1, 4], [0, 5]]),)


def padded() -> Model:
    """Return padding by a value, and what is compared with a number."""

    def forward(s: Any, x: Tensor) -> Tensor:
        y = F.pad(x, (1, 2), value=0.5)
        y = torch.where(y > 0.25, y, torch.full_like(y, -2.5))
        return s.conv(y).clamp(-3.0, 3.0)

    return made(forward, conv=nn.Conv1d(3, 4, 3)), (x(2, 3, 8),)


def positions() -> Model:
    """Return a table looked up at positions that are a buffer, as in BERT."""
    table = nn.Embedding(8, 4)
    ids = nn.Buffer(torch.arange(8)[None], persistent=False)

    def forward(s: Any, x: Tensor) -> Tensor:
        return s.norm(s.tokens(x) + s.table(s.position_ids[:, : x.shape[1]]))

    state = {"tokens": nn.Embedding(9, 4), "norm": nn.LayerNorm(4)}
    net = made(forward, table=table, position_ids=ids, **state)
    return net, (torch.tensor([[1, 4, 2], [0, 8, 3]]),)


def quantizer() -> Model:
    """Return the nearest rows of a codebook that is a buffer, as in VQ-VAE."""

    def forward(s: Any, x: Tensor) -> Tensor:
        near = torch.cdist(s.w(x), s.codebook).argmin(-1)
        return F.embedding(near, s.codebook) + s.w(x)

    return made(forward, codebook=nn.Buffer(x(7, 3)), w=nn.Linear(4, 3)), (x(5, 4),)
