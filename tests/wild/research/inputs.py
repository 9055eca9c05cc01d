"""Inputs that programs share, each at two sizes."""

from __future__ import annotations

from typing import Any

import torch

#: A model, its inputs, and inputs of another size or None.
Program = tuple[torch.nn.Module, tuple[Any, ...], tuple[Any, ...] | None]
Sizes = tuple[tuple[Any, ...], tuple[Any, ...]]


def sequences(width: int = 8) -> Sizes:
    """Return sequences [batch, 6, width]; the length is fixed."""
    return (torch.randn(2, 6, width),), (torch.randn(3, 6, width),)


def free_sequences(width: int = 8) -> Sizes:
    """Return sequences [batch, length, width]."""
    return (torch.randn(2, 6, width),), (torch.randn(3, 9, width),)


def tokens(vocabulary: int) -> Sizes:
    """Return identifiers int64[batch, 6]."""
    shapes = (2, 6), (3, 6)
    small, large = (torch.randint(1, vocabulary, shape) for shape in shapes)
    return (small,), (large,)


def pictures(channels: int = 3, side: int = 16) -> Sizes:
    """Return images [batch, channels, side, side]."""
    shape = (channels, side, side)
    return (torch.randn(2, *shape),), (torch.randn(3, *shape),)


def vectors(*widths: int) -> Sizes:
    """Return one matrix [batch, width] for each width."""
    small = tuple(torch.randn(4, width) for width in widths)
    return small, tuple(torch.randn(7, width) for width in widths)
