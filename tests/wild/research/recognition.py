"""Detectors, readers and recognizers, as projects on GitHub write them."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tests.wild.research.inputs import Program


class YoloHead(nn.Module):
    """A detector with anchors: offsets decoded on a grid that each call makes."""

    def __init__(self, classes: int = 4):
        super().__init__()
        self.classes = classes
        self.stem = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1, bias=False),
            nn.BatchNorm2d(16),
            nn.SiLU(inplace=True),
            nn.Conv2d(16, 16, 3, 2, 1, bias=False),
            nn.BatchNorm2d(16),
            nn.SiLU(inplace=True),
        )
        self.down = nn.Conv2d(16, 16, 3, 2, 1)
        self.heads = nn.ModuleList(nn.Conv2d(16, 3 * (5 + classes), 1) for _ in "ab")
        anchors = torch.tensor([[4, 5, 8, 6, 7, 12], [12, 10, 14, 18, 20, 16]])
        self.register_buffer("anchors", anchors.float().view(2, 1, 3, 1, 1, 2))
        self.strides = (4, 8)

    def forward(self, x: Any) -> Any:
        maps = [self.stem(x)]
        maps.append(self.down(maps[0]))
        boxes = []
        for level, (head, feature) in enumerate(zip(self.heads, maps, strict=True)):
            y = head(feature)
            b, _, h, w = y.shape
            y = y.view(b, 3, 5 + self.classes, h, w).permute(0, 1, 3, 4, 2).contiguous()
            rows, columns = torch.meshgrid(
                torch.arange(h), torch.arange(w), indexing="ij"
            )
            grid = torch.stack((columns, rows), 2).view(1, 1, h, w, 2).float()
            y = y.sigmoid().clone()
            y[..., 0:2] = (y[..., 0:2] * 2 - 0.5 + grid) * self.strides[level]
            y[..., 2:4] = (y[..., 2:4] * 2) ** 2 * self.anchors[level]
            boxes.append(y.view(b, -1, 5 + self.classes))
        return torch.cat(boxes, 1)


class TextReader(nn.Module):
    """CRNN: convolutions that flatten the height, LSTMs over the width, CTC scores."""

    def __init__(self, classes: int = 11):
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, 8, 3, 1, 1),
            nn.ReLU(True),
            nn.MaxPool2d(2, 2),
            nn.Conv2d(8, 16, 3, 1, 1),
            nn.BatchNorm2d(16),
            nn.ReLU(True),
            nn.MaxPool2d((2, 2), (2, 1), (0, 1)),
            nn.Conv2d(16, 16, 2, 1, 0),
            nn.ReLU(True),
        )
        self.first = nn.LSTM(48, 8, bidirectional=True)
        self.middle = nn.Linear(16, 8)
        self.second = nn.LSTM(8, 8, bidirectional=True)
        self.last = nn.Linear(16, classes)

    def forward(self, x: Any) -> Any:
        y = self.convolutions(x)
        b, c, h, w = y.size()
        y = y.reshape(b, c * h, w).permute(2, 0, 1)
        y, _ = self.first(y)
        t, b, c = y.size()
        y = self.middle(y.view(t * b, c)).view(t, b, -1)
        y, _ = self.second(y)
        scores = self.last(y).log_softmax(2)
        best = scores.argmax(2)
        changed = torch.cat(
            [torch.ones_like(best[:1], dtype=torch.bool), best[1:] != best[:-1]]
        )
        return scores, (changed & (best != 0)).sum(0)


class MatchingCost(nn.Module):
    """DETR's training cost: class, L1 and generalized IoU of every pair of boxes."""

    def __init__(self, width: int = 8, classes: int = 5):
        super().__init__()
        self.label = nn.Linear(width, classes)
        self.box = nn.Sequential(
            nn.Linear(width, 8), nn.ReLU(), nn.Linear(8, 4), nn.Sigmoid()
        )

    @staticmethod
    def corners(boxes: Any) -> Any:
        x, y, w, h = boxes.unbind(-1)
        return torch.stack([x - 0.5 * w, y - 0.5 * h, x + 0.5 * w, y + 0.5 * h], dim=-1)

    def overlap(self, a: Any, b: Any) -> Any:
        a, b = self.corners(a), self.corners(b)
        low = torch.max(a[:, None, :2], b[None, :, :2])
        high = torch.min(a[:, None, 2:], b[None, :, 2:])
        inner = (high - low).clamp(min=0).prod(2)
        areas = [(c[:, 2] - c[:, 0]) * (c[:, 3] - c[:, 1]) for c in (a, b)]
        union = areas[0][:, None] + areas[1] - inner
        low = torch.min(a[:, None, :2], b[None, :, :2])
        high = torch.max(a[:, None, 2:], b[None, :, 2:])
        hull = (high - low).clamp(min=0).prod(2)
        return inner / union - (hull - union) / hull

    def forward(self, queries: Any, labels: Any, boxes: Any) -> Any:
        share, found = self.label(queries).softmax(-1), self.box(queries)
        distance = (found[:, None] - boxes[None]).abs().sum(-1)
        cost = 5 * distance - share[:, labels] - 2 * self.overlap(found, boxes)
        return cost, cost.argmin(dim=0), cost.min(dim=1).values


class PlaceDescriptor(nn.Module):
    """NetVLAD: residuals to soft clusters, normalized twice."""

    def __init__(self, width: int = 8, clusters: int = 4):
        super().__init__()
        self.features = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.assign = nn.Conv2d(width, clusters, 1)
        self.centroids = nn.Parameter(torch.rand(clusters, width))

    def forward(self, x: Any) -> Any:
        y = functional.normalize(self.features(x), p=2, dim=1)
        b, c = y.shape[:2]
        share = functional.softmax(
            self.assign(y).view(b, self.centroids.size(0), -1), 1
        )
        flat = y.view(b, c, -1)
        sums = torch.zeros(b, self.centroids.size(0), c, dtype=x.dtype)
        for k in range(self.centroids.size(0)):
            residual = flat.unsqueeze(1).permute(1, 0, 2, 3) - self.centroids[
                k : k + 1
            ].expand(flat.size(-1), -1, -1).permute(1, 2, 0).unsqueeze(0)
            residual = residual * share[:, k : k + 1].unsqueeze(2).permute(1, 0, 2, 3)
            sums[:, k : k + 1, :] = residual.sum(dim=-1).permute(1, 0, 2)
        return functional.normalize(
            functional.normalize(sums, dim=2).view(b, -1), dim=1
        )


class ShiftedWindows(nn.Module):
    """A block of windowed attention with a cyclic shift, a mask and relative biases."""

    def __init__(self, width: int = 8, heads: int = 2, side: int = 4):
        super().__init__()
        self.heads, self.side, self.shift = heads, side, side // 2
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.table = nn.Parameter(torch.randn((2 * side - 1) ** 2, heads) * 0.02)
        steps = torch.stack(
            torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
        ).flatten(1)
        offsets = (steps[:, :, None] - steps[:, None, :]).permute(1, 2, 0) + side - 1
        self.register_buffer(
            "index", (offsets * torch.tensor([2 * side - 1, 1])).sum(-1)
        )

    def split(self, x: Any) -> Any:
        b, h, w, c = x.shape
        s = self.side
        x = x.view(b, h // s, s, w // s, s, c).permute(0, 1, 3, 2, 4, 5)
        return x.reshape(-1, s * s, c)

    def mask(self, h: int, w: int) -> Any:
        regions, count = torch.zeros(1, h, w, 1), 0
        edges = (
            slice(0, -self.side),
            slice(-self.side, -self.shift),
            slice(-self.shift, None),
        )
        for rows in edges:
            for columns in edges:
                regions[:, rows, columns, :] = count
                count += 1
        ids = self.split(regions).squeeze(-1)
        apart = ids.unsqueeze(1) - ids.unsqueeze(2)
        return apart.masked_fill(apart != 0, -100.0).masked_fill(apart == 0, 0.0)

    def forward(self, x: Any) -> Any:
        b, h, w, c = x.shape
        windows = self.split(torch.roll(x, (-self.shift, -self.shift), (1, 2)))
        n = windows.size(1)
        qkv = self.qkv(windows).reshape(-1, n, 3, self.heads, c // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(c // self.heads)
        scores = scores + self.table[self.index.view(-1)].view(n, n, -1).permute(
            2, 0, 1
        )
        mask = self.mask(h, w)
        scores = scores.view(b, mask.size(0), self.heads, n, n) + mask[None, :, None]
        y = scores.view(-1, self.heads, n, n).softmax(-1) @ v
        y = self.out(y.transpose(1, 2).reshape(-1, n, c))
        s = self.side
        y = y.view(b, h // s, w // s, s, s, c).permute(0, 1, 3, 2, 4, 5)
        return x + torch.roll(y.reshape(b, h, w, c), (self.shift, self.shift), (1, 2))


class AngularMargin(nn.Module):
    """ArcFace: cosines to class weights, with a margin on the angle of the label."""

    def __init__(self, width: int = 6, classes: int = 5):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(width, 8), nn.BatchNorm1d(8), nn.PReLU())
        self.weight = nn.Parameter(torch.randn(classes, 8))

    def forward(self, x: Any, labels: Any) -> Any:
        cosine = functional.linear(
            functional.normalize(self.embed(x)), functional.normalize(self.weight)
        )
        sine = torch.sqrt((1.0 - cosine.pow(2)).clamp(1e-7, 1))
        moved = cosine * math.cos(0.5) - sine * math.sin(0.5)
        moved = torch.where(cosine > math.cos(math.pi - 0.5), moved, cosine - 0.24)
        one_hot = torch.zeros_like(cosine)
        one_hot.scatter_(1, labels.view(-1, 1).long(), 1)
        logits = 30.0 * (one_hot * moved + (1.0 - one_hot) * cosine)
        return logits, functional.cross_entropy(logits, labels)


def _words() -> Program:
    return TextReader(), (torch.randn(2, 1, 16, 24),), (torch.randn(3, 1, 16, 33),)


def _matching() -> Program:
    def inputs(n: int) -> tuple[Any, ...]:
        return (
            torch.randn(7, 8),
            torch.randint(0, 5, (n,)),
            torch.rand(n, 4) * 0.5 + 0.2,
        )

    return MatchingCost(), inputs(3), inputs(5)


def _faces() -> Program:
    def inputs(n: int) -> tuple[Any, ...]:
        return torch.randn(n, 6), torch.randint(0, 5, (n,))

    return AngularMargin(), inputs(4), inputs(7)


def _any_size(kind: Any, *shapes: tuple[int, ...]) -> Any:
    def build() -> Program:
        small, large = ((torch.randn(shape),) for shape in shapes)
        return kind(), small, large

    return build


PROGRAMS = {
    "yolo_head": _any_size(YoloHead, (2, 3, 16, 24), (3, 3, 24, 32)),
    "text_reader": _words,
    "matching_cost": _matching,
    "place_descriptor": _any_size(PlaceDescriptor, (2, 3, 8, 10), (3, 3, 12, 8)),
    "shifted_windows": _any_size(ShiftedWindows, (2, 8, 8, 8), (1, 12, 8, 8)),
    "angular_margin": _faces,
}
