"""Fused plans on a CUDA device: values, and that every fused kernel was used."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, ops
from tests.runtime.onednn import normal
from tests.runtime.plan.test_device_fusions import Block, Encoder, Squeezed, filled

pytestmark = pytest.mark.cuda
TOLERANCE = {"float32": 1e-4, "tf32": 1e-2, "float16": 1e-2}


class Depthwise(nn.Module):
    """An inverted residual of a mobile network."""

    def __init__(self) -> None:
        self.wide = nn.Conv2d(8, 16, 1)
        self.spatial = nn.Conv2d(16, 16, 3, stride=1, padding=1, groups=16)
        self.narrow = nn.Conv2d(16, 8, 1)

    def __call__(self, x: Any) -> Any:
        y = ops.clip(self.wide(x), 0.0, 6.0)
        y = ops.clip(self.spatial(y), 0.0, 6.0)
        return self.narrow(y) + x


SHAPES: dict[type[nn.Module], tuple[int, ...]] = {
    Block: (4, 5, 6),
    Depthwise: (8, 7, 9),
    Encoder: (5, 8),
    Squeezed: (8, 5, 4),
}


@pytest.fixture(params=TOLERANCE)
def precision(request: Any) -> Any:
    """The precision, set on the device while a test runs."""
    pytest.importorskip("cupy")
    device = burn.Cuda(0)
    before, device.tf32 = device.tf32, request.param == "tf32"
    yield request.param
    device.tf32 = before


@pytest.mark.parametrize("batch", (1, 8))
@pytest.mark.parametrize("kind", SHAPES)
def test_fused_plans(kind: Any, batch: int, precision: str) -> None:
    dtype = "float16" if precision == "float16" else "float32"
    device = burn.Cuda(0)
    module = filled(kind(), dtype, device)
    host = filled(kind(), "float32", burn.Cpu())
    plan = burn.compile(module)
    for seed in range(4):
        x = normal(batch, *SHAPES[kind], seed=seed).astype(dtype)
        expected = host(burn.from_numpy(x.astype("float32"))).numpy()
        actual = plan(burn.from_numpy(x, device)).numpy()
        atol = TOLERANCE[precision] * np.abs(expected).max()
        np.testing.assert_allclose(actual, expected, atol=atol, rtol=0)
    assert plan.notes == []


@pytest.mark.parametrize("causal", (False, True))
@pytest.mark.parametrize("mask", (None, "bool", "float"))
@pytest.mark.parametrize("size", (8, 12, 64))
def test_attention(size: int, mask: Any, causal: bool, precision: str) -> None:
    dtype = "float16" if precision == "float16" else "float32"
    operands = [normal(2, 3, 16, size, seed=n).astype(dtype) for n in range(3)]
    seen = normal(2, 1, 16, 16, seed=3)
    if mask is not None:
        operands.append(seen > -1 if mask == "bool" else seen.astype(dtype))

    def function(*parts: Any) -> Any:
        return ops.attention(*parts, causal=causal)

    plan = burn.compile(function)
    expected = function(*(burn.from_numpy(a) for a in operands)).numpy()
    for _ in range(3):
        actual = plan(*(burn.from_numpy(a, burn.Cuda(0)) for a in operands)).numpy()
    atol = TOLERANCE[precision] * np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, atol=atol, rtol=0)
    assert plan.notes == []
