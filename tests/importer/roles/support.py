"""What the models of one role are made with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Model = tuple[nn.Module, tuple[Tensor, ...]]


def parameter(*shape: int) -> nn.Parameter:
    """Return a random parameter."""
    return nn.Parameter(torch.randn(*shape))


def made(forward: Callable[..., Any], **state: Any) -> nn.Module:
    """Return a module with this state and this ``forward(self, ...)``."""
    module: nn.Module = type("Net", (nn.Module,), {"forward": forward})()
    for name, value in state.items():
        setattr(module, name, value)
    return module


def x(*shape: int) -> Tensor:
    """Return a random input."""
    return torch.randn(*shape)
