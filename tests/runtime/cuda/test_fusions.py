"""Fused plans on a CUDA device: values, and that every fused kernel was used."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, ops
from tests.runtime.onednn import normal
from tests.runtime.plan.device.test_fusions import Block, Encoder, Squeezed, filled

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


class Permuted(nn.Module):
    """A block of ConvNeXt: two layers of channels-last rows, and a residual."""

    def __init__(self) -> None:
        self.wide, self.narrow = nn.Linear(8, 16), nn.Linear(16, 8)
        self.spatial = nn.Conv2d(8, 8, 7, padding=3, groups=8)
        self.norm = nn.LayerNorm(8)
        self.scale = nn.parameter(8, 1, 1)

    def __call__(self, x: Any) -> Any:
        rows = self.norm(ops.permute(self.spatial(x), (0, 2, 3, 1)))
        rows = self.narrow(ops.gelu(self.wide(rows)))
        return x + ops.permute(rows, (0, 3, 1, 2)) * self.scale


SHAPES: dict[type[nn.Module], tuple[int, ...]] = {
    Block: (4, 5, 6),
    Depthwise: (8, 7, 9),
    Encoder: (5, 8),
    Permuted: (8, 9, 7),
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


EPILOGUES: dict[str, Any] = {
    "relu": lambda y, x: ops.relu(y),
    "clip": lambda y, x: ops.clip(y, 0.0, 6.0),
    "clip between others": lambda y, x: ops.clip(y, -1.0, 1.0),
    "silu": lambda y, x: ops.silu(y),
    "gelu": lambda y, x: ops.gelu(y),
    "gelu with tanh": lambda y, x: ops.gelu(y, approximate="tanh"),
    "residual and relu": lambda y, x: ops.relu(y + x),
}


@pytest.mark.parametrize("extent", (3, 40))
@pytest.mark.parametrize("taps", (0, 1, 3))
@pytest.mark.parametrize("name", EPILOGUES)
def test_epilogues_keep_nan(name: str, taps: int, extent: int, precision: str) -> None:
    """A linear layer (no taps), a pointwise and another convolution of NaN."""
    dtype = "float16" if precision == "float16" else "float32"
    x, weight = normal(2, 64, extent, extent), normal(64, 64, taps or 1, taps or 1) / 8
    x[0, 3, 1, 1], x[1, :, 2, 2] = np.nan, np.inf
    if not taps:
        x, weight = np.moveaxis(x, 1, -1).copy(), weight[:, :, 0, 0]
    layer = ops.conv if taps else ops.linear
    static = {"padding": taps // 2} if taps else {}

    def function(x: Any, weight: Any, bias: Any) -> Any:
        return EPILOGUES[name](layer(x, weight, bias, **static), x)

    operands = [a.astype(dtype) for a in (x, weight, normal(64, seed=1))]
    expected = function(*(burn.from_numpy(a.astype("float32")) for a in operands))
    plan, device = burn.compile(function), burn.Cuda(0)
    for _ in range(3):
        actual = plan(*(burn.from_numpy(a, device) for a in operands)).numpy()
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected.numpy()))
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
