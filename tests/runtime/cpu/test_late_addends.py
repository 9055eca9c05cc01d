"""Layers whose addend follows an activation, and is not read after them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, ops
from burn.backend.cpu.onednn.binding.engine import current

ACTIVATIONS = ("gelu", "relu", "silu", "sigmoid", "tanh")


def normal(*shape: int, seed: int = 0) -> burn.Tensor:
    values = np.random.default_rng(seed).standard_normal(shape)
    return burn.from_numpy(values.astype(np.float32))


def expect_engine(layer: Any, activation: str, x: burn.Tensor, y: burn.Tensor) -> None:
    """The plan has the values of eager calls, and oneDNN if present its layer."""
    activate: Callable[[Any], Any] = getattr(ops, activation)

    def function(x: burn.Tensor, y: burn.Tensor) -> burn.Tensor:
        result: burn.Tensor = activate(layer(x)) + ops.sqrt(ops.abs(y))
        return result

    compiled = burn.compile(function)
    for call in range(4):
        if call == 2:
            x = x * 2.0
        if call == 3 and x.shape[0]:
            x = burn.from_numpy(
                np.where(np.arange(x.shape[-1]) == 1, np.nan, x.numpy())
            )
        expected = function(x, y).numpy()
        np.testing.assert_allclose(compiled(x, y).numpy(), expected, 1e-3, 1e-4)
    if x.shape[0] and current() is not None:
        rows = compiled.profile(normal(*x.shape), y).rows
        engines = {name for row in rows for name in row.engines}
        assert "oneDNN" in engines
        assert not any("()" in name for row in rows for name in row.kernels)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("shape", [(2, 4), (1, 64), (3, 5, 16), (0, 3, 16)])
def test_linear(activation: str, shape: tuple[int, ...]) -> None:
    layer = nn.Linear(shape[-1], 24)
    expect_engine(layer, activation, normal(*shape), normal(*shape[:-1], 24, seed=1))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(
    ("channels", "kernel", "groups"),
    [(3, 3, 1), (16, 1, 1), (16, 3, 1), (32, 3, 4), (32, 3, 32)],
)
def test_conv(activation: str, channels: int, kernel: int, groups: int) -> None:
    layer = nn.Conv2d(
        channels, 32, kernel_size=kernel, padding=kernel // 2, groups=groups
    )
    x, y = normal(2, channels, 14, 12), normal(2, 32, 14, 12, seed=1)
    expect_engine(layer, activation, x, y)
