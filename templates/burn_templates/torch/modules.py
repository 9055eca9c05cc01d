"""Modules that PyTorch does not have, and functions on modules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn


class _Conv1D(nn.Module):
    """x @ weight + bias over the last axis: the layer of this name in GPT-2."""

    def __init__(
        self, nf: int, nx: int, bias: bool = True, dtype: Any = torch.float32
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(nx, nf, dtype=dtype))
        nn.init.normal_(self.weight, std=0.02)
        self.bias = nn.Parameter(torch.zeros(nf, dtype=dtype)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        y = x @ self.weight
        return y if self.bias is None else y + self.bias


class _PaddedConv1d(nn.Conv1d):
    """A convolution with padding (before, after) for each axis."""

    def __init__(self, *args: Any, padding: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.pads = _pads(padding, 1)

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(F.pad(input, self.pads))


class _PaddedConv2d(nn.Conv2d):
    """A convolution with padding (before, after) for each axis."""

    def __init__(self, *args: Any, padding: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.pads = _pads(padding, 2)

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(F.pad(input, self.pads))


class _PaddedConv3d(nn.Conv3d):
    """A convolution with padding (before, after) for each axis."""

    def __init__(self, *args: Any, padding: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.pads = _pads(padding, 3)

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(F.pad(input, self.pads))


def _pads(padding: Any, rank: int) -> tuple[int, ...]:
    """Return padding as F.pad takes it: pairs from the last axis on."""
    sides = (padding,) * rank if isinstance(padding, int) else padding
    pairs = [(side, side) if isinstance(side, int) else side for side in sides]
    return tuple(side for pair in reversed(pairs) for side in pair)


class _GlobalAvgPool(nn.Module):
    """The mean over the space of [N, C, *size]: [N, C], or [N, C, 1, ...] if kept."""

    def __init__(self, keepdims: bool = False) -> None:
        super().__init__()
        self.keepdims = keepdims

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(tuple(range(2, x.ndim)), keepdim=self.keepdims)


class _RandomNormalLike(nn.Module):
    """Normally distributed numbers in the shape and dtype of the input."""

    def __init__(self, mean: float = 0.0, scale: float = 1.0) -> None:
        super().__init__()
        self.mean, self.scale = mean, scale

    def forward(self, x: Tensor) -> Tensor:
        return torch.randn_like(x) * self.scale + self.mean


class _RandomUniformLike(nn.Module):
    """Numbers spread evenly over [low, high) in the shape and dtype of the input."""

    def __init__(self, low: float = 0.0, high: float = 1.0) -> None:
        super().__init__()
        self.low, self.high = low, high

    def forward(self, x: Tensor) -> Tensor:
        return torch.rand_like(x) * (self.high - self.low) + self.low


def _device(module: nn.Module) -> torch.device:
    """Return where the parameters and buffers of a module are."""
    for tensor in (*module.parameters(), *module.buffers()):
        return tensor.device
    return torch.get_default_device()


def _load(model: nn.Module, weights: str | Path) -> None:
    """Load all parameters and buffers, those outside of the state dict too."""
    tensors, state = load_file(weights), model.state_dict()
    missing, _ = model.load_state_dict(
        {key: value for key, value in tensors.items() if key in state}, strict=False
    )
    buffers = {key: b for key, b in model.named_buffers() if key not in state}
    for key, buffer in buffers.items():
        buffer.copy_(tensors[key])
    unknown = set(tensors) - set(state) - set(buffers)
    if missing or unknown:
        raise KeyError(f"missing keys {missing}, unknown keys {sorted(unknown)}")
