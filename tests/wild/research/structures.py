"""Equivariance, codebooks, hypernetworks, ties, detection heads and updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional
from torch.nn.utils import parametrizations

from tests.wild.research.inputs import Program, free_sequences, pictures, vectors


class Rotations(nn.Module):
    """A convolution that is equivariant to quarter turns: one kernel, turned."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3, 3, 3) * 0.3)
        self.bias = nn.Parameter(torch.randn(4))

    def forward(self, x: Any) -> Any:
        kernels = [torch.rot90(self.weight, k, (2, 3)) for k in range(4)]
        y = functional.conv2d(x, torch.stack(kernels, 1).flatten(0, 1), padding=1)
        y = y.unflatten(1, (4, 4)) + self.bias[:, None, None, None]
        return y.relu().amax(2).mean((-2, -1))


class VectorNeurons(nn.Module):
    """Linear layers and ReLUs of 3D vectors, equivariant to rotations."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.direction = nn.Linear(4, 6, bias=False), nn.Linear(4, 6, False)

    def forward(self, x: Any) -> Any:
        v = self.mix(x.unflatten(-1, (-1, 3)).mT)
        k = functional.normalize(self.direction(x.unflatten(-1, (4, 3)).mT), dim=-2)
        dot = (v * k).sum(-2, keepdim=True)
        v = torch.where(dot >= 0, v, v - dot * k)
        return torch.cat([v.flatten(1), torch.linalg.vector_norm(v, dim=-2)], -1)


class Codebook(nn.Module):
    """Residual vector quantization with straight-through gradients."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.codes = nn.Parameter(torch.randn(2, 16, width))
        self.out = nn.Linear(width, 3)

    def forward(self, x: Any) -> Any:
        rest, total, indices = x, torch.zeros_like(x), []
        for level in range(2):
            index = torch.cdist(rest, self.codes[level]).argmin(-1)
            code = functional.embedding(index, self.codes[level])
            rest, total = rest - code, total + code
            indices.append(index)
        straight = x + (total - x).detach()
        commit = functional.mse_loss(x, total.detach(), reduction="none").mean(-1)
        return self.out(straight), torch.stack(indices, -1), commit


class Glow(nn.Module):
    """A flow: actnorm, an invertible matrix by factors, and affine coupling."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.rand(width)), nn.Parameter(
            torch.zeros(width)
        )
        self.lower = nn.Parameter(torch.randn(width, width) * 0.1)
        self.upper = nn.Parameter(torch.randn(width, width) * 0.1)
        self.log_diagonal = nn.Parameter(torch.randn(width) * 0.1)
        self.register_buffer("order", torch.randperm(width))
        self.net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))

    def forward(self, x: Any) -> Any:
        x = x * self.scale.exp() + self.shift
        lower = torch.tril(self.lower, -1) + torch.eye(8)
        upper = torch.triu(self.upper, 1) + torch.diag(self.log_diagonal.exp())
        x = x[:, self.order] @ (lower @ upper).T
        a, b = torch.tensor_split(x, 2, dim=-1)
        log_scale, shift = self.net(a).chunk(2, -1)
        log_scale = 2 * torch.tanh(log_scale / 2)
        z = torch.hstack([a, b * log_scale.exp() + shift])
        log_det = self.scale.sum() + self.log_diagonal.sum() + log_scale.sum(-1)
        prior = torch.distributions.Normal(0.0, 1.0, validate_args=False)
        return z, prior.log_prob(z).sum(-1) + log_det


class HyperNetwork(nn.Module):
    """A network whose weights another one computes, called functionally."""

    def __init__(self) -> None:
        super().__init__()
        self.target = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
        self.hyper = nn.Linear(3, 4 * 6 + 6)

    def forward(self, x: Any, task: Any) -> Any:
        parameters = self.hyper(task.mean(0))
        weight, bias = parameters[:24].view(6, 4), parameters[24:]
        own = {"0.weight": weight, "0.bias": bias + self.target[0].bias}
        return functional_call(self.target, own, (x,))


class TiedAutoencoder(nn.Module):
    """An autoencoder whose decoder is the transposed encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 6), nn.Linear(6, 3)
        self.biases = nn.ParameterList([torch.randn(6), torch.randn(8)])

    def forward(self, x: Any) -> Any:
        code = self.second(functional.selu(self.first(x)))
        y = functional.linear(code, self.second.weight.t(), self.biases[0])
        y = functional.linear(functional.selu(y), self.first.weight.t(), self.biases[1])
        return y, functional.mse_loss(y, x)


class Constrained(nn.Module):
    """Spectral normalization, weight norm and an orthogonal matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.a = parametrizations.spectral_norm(nn.Linear(8, 6))
        self.b = parametrizations.weight_norm(nn.Linear(6, 6))
        self.c = parametrizations.orthogonal(nn.Linear(6, 6), orthogonal_map="cayley")

    def forward(self, x: Any) -> Any:
        return self.c(functional.mish(self.b(functional.hardtanh(self.a(x)))))


class Boxes(NamedTuple):
    """Corners and scores of boxes."""

    corners: Any
    scores: Any


class DetectionHead(nn.Module):
    """Boxes of a grid, decoded, clipped, and the best eight with their overlaps."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 5, 3, stride=2, padding=1)

    def decode(self, x: Any) -> Boxes:
        raw = self.conv(x).permute(0, 2, 3, 1)
        grid = torch.stack(
            torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="xy"), -1
        )
        center = (raw[..., :2].sigmoid() + grid) * 2
        size = raw[..., 2:4].exp().clamp(max=6.0)
        corners = torch.cat([center - size / 2, center + size / 2], -1).clamp(0, 16)
        return Boxes(corners.flatten(1, 2), raw[..., 4].sigmoid().flatten(1))

    def forward(self, x: Any) -> Any:
        boxes = self.decode(x)
        best = boxes.scores.topk(8, sorted=True)
        index = best.indices.unsqueeze(-1).expand(-1, -1, 4)
        corners = boxes.corners.gather(1, index)
        a, b = corners[:, :, None], corners[:, None]
        sides = (torch.minimum(a, b)[..., 2:] - torch.maximum(a, b)[..., :2]).clamp(
            min=0
        )
        areas = (corners[..., 2:] - corners[..., :2]).prod(-1)
        shared = sides.prod(-1)
        overlap = shared / (areas[:, :, None] + areas[:, None] - shared + 1e-6)
        earlier = torch.ones(8, 8, dtype=torch.bool).tril(-1)
        kept = ~((overlap > 0.5) & earlier).any(-1)
        return corners, best.values * kept, kept


class Histogram(nn.Module):
    """Learned values of bins, found by search in sorted edges."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(6, 4)
        self.register_buffer("edges", torch.linspace(-1, 1, 5))
        self.knots = nn.Parameter(torch.sort(torch.randn(8, 5)).values)

    def forward(self, x: Any) -> Any:
        rows = self.table(torch.bucketize(x, self.edges, right=True))
        interval = torch.searchsorted(self.knots.detach(), x.T.contiguous()).T
        inside = torch.where(interval == 0, 1.0, interval.to(x.dtype) / 5)
        return torch.einsum("...fk,...f->...k", rows, inside)


class MessagePassing(nn.Module):
    """A graph network: messages summed, averaged and maximized by receiver."""

    def __init__(self) -> None:
        super().__init__()
        self.message, self.update = nn.Linear(16, 8), nn.Linear(32, 8)

    def forward(self, x: Any, edges: Any) -> Any:
        sender, receiver = edges.unbind(0)
        m = self.message(torch.cat((x[sender], x[receiver]), -1)).relu()
        index = receiver.unsqueeze(-1).expand_as(m)
        total = torch.zeros_like(x).index_add_(0, receiver, m)
        means = torch.zeros_like(x).scatter_reduce_(
            0, index, m, "mean", include_self=False
        )
        most = x.new_zeros(x.shape).scatter_reduce(0, index, m, reduce="amax")
        return x + self.update(torch.cat([x, total, means, most], 1))


class Resampler(nn.Module):
    """Patches out and back, shuffles, affine grids and resizes by factors."""

    def __init__(self) -> None:
        super().__init__()
        self.theta = nn.Parameter(torch.tensor([[0.9, 0.1, 0.0], [-0.1, 1.1, 0.1]]))
        self.conv = nn.Conv2d(3, 12, 3, padding="same", padding_mode="reflect")

    def forward(self, x: Any) -> Any:
        grid = functional.affine_grid(
            self.theta.expand(x.shape[0], -1, -1), list(x.shape), align_corners=False
        )
        y = functional.grid_sample(x, grid, padding_mode="border", align_corners=False)
        y = functional.pixel_shuffle(self.conv(y), 2)
        y = functional.interpolate(y, scale_factor=0.75, mode="bicubic")
        y = functional.interpolate(
            y, scale_factor=(1.5, 2.0), mode="bilinear", align_corners=True
        )
        columns = functional.unfold(y, (4, 4), stride=2, padding=1)
        back = functional.fold(columns * 0.5, (36, 48), (4, 4), stride=2, padding=1)
        return functional.pixel_unshuffle(back, 4)


class Padded(nn.Module):
    """Means, medians and maxima of the steps that a mask keeps."""

    def __init__(self, width: int = 8):
        super().__init__()
        self.score = nn.Linear(width, 1)
        self.empty = nn.Parameter(torch.zeros(()))

    def forward(self, x: Any, count: Any) -> Any:
        mask = torch.arange(x.shape[1]).expand(x.shape[0], -1) < count[:, None]
        weights = self.score(x).squeeze(-1).masked_fill(~mask, -1e9).softmax(-1)
        pooled = torch.matmul(weights.unsqueeze(1), x).squeeze(1)
        most = x.masked_fill(~mask.unsqueeze(-1), -torch.inf).amax(1)
        rows = torch.nan_to_num(most, neginf=0.0) + self.empty
        return torch.where(count[:, None] > 0, pooled + rows, self.empty), mask.any(1)


class Slices(nn.Module):
    """Updates in place of slices, diagonals, masks and transposed views."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8) * 0.3)

    def forward(self, x: Any) -> Any:
        y = x.clone()
        y[:, 1:4].add_(1.0).mul_(0.5)
        y[:, -1] = y[:, 0] * 2
        m = torch.einsum("bi,ij->bij", y, self.weight)
        m.diagonal(dim1=1, dim2=2).add_(1.0)
        m.transpose(1, 2)[:, 0] -= x
        m[m < -1] = -1.0
        m[:, [0, 2], 1] = x[:, :2]
        return m.permute(2, 0, 1).contiguous().view(8, -1).T @ self.weight[0]


class Running(nn.Module):
    """A layer that keeps a running mean of its inputs and subtracts it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 4)
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("calls", torch.tensor(3))

    def forward(self, x: Any) -> Any:
        momentum = 1.0 / (self.calls + 1)
        mean = self.mean + momentum * (x.mean(0) - self.mean)
        with torch.autocast("cpu", enabled=False):
            return self.linear(x - mean), mean


def _graph() -> Program:
    edges = torch.tensor([[0, 1, 2, 3, 3], [1, 2, 0, 1, 2]])
    more = torch.tensor([[0, 1, 2, 3, 3, 4, 6], [1, 2, 0, 1, 2, 5, 0]])
    return MessagePassing(), (torch.randn(4, 8), edges), (torch.randn(7, 8), more)


def _padded() -> Program:
    small, large = free_sequences()
    counts = torch.tensor([4, 0]), torch.tensor([9, 1, 3])
    return Padded(), (*small, counts[0]), (*large, counts[1])


def _resampled() -> Program:
    return Resampler(), *pictures()


def _of_vectors(kind: type[nn.Module], *widths: int) -> Callable[[], Program]:
    return lambda: (kind(), *vectors(*widths))


def _of_pictures(kind: type[nn.Module]) -> Callable[[], Program]:
    return lambda: (kind(), *pictures())


PROGRAMS: dict[str, Callable[[], Program]] = {
    "quarter_turns": _of_pictures(Rotations),
    "vector_neurons": _of_vectors(VectorNeurons, 12),
    "residual_vq": _of_vectors(Codebook, 8),
    "glow": _of_vectors(Glow, 8),
    "functional_hypernetwork": _of_vectors(HyperNetwork, 4, 3),
    "tied_autoencoder": _of_vectors(TiedAutoencoder, 8),
    "constrained": _of_vectors(Constrained, 8),
    "detection_head": _of_pictures(DetectionHead),
    "histogram": _of_vectors(Histogram, 8),
    "message_passing": _graph,
    "resampler": _resampled,
    "padded_pooling": _padded,
    "slice_updates": _of_vectors(Slices, 8),
    "running_mean": _of_vectors(Running, 8),
}
