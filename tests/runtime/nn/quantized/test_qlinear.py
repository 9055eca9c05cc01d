"""Layers of quantized inputs, weights and results."""

from typing import Any, TypeVar

import numpy as np
import pytest

import burn
from burn import dtypes, nn
from tests.modules import Array

RNG = np.random.default_rng(6)
Layer = TypeVar("Layer", bound=nn.Module)


def loaded(layer: Layer, **numbers: Any) -> Layer:
    """Return ``layer`` with ``numbers`` as state."""
    own = layer.state_dict()
    given = {key: np.asarray(n, own[key].dtype) for key, n in numbers.items()}
    layer.load_state_dict({**own, **given})
    return layer


def rounded(y: Array, scale: float, zero_point: int) -> Array:
    result: Array = np.clip(np.rint(y / scale) + zero_point, 0, 255)
    return result


SCALES: dict[str, Any] = {"x_scale": 0.03, "x_zero_point": 110, "scale": 0.7}
SCALES |= {"zero_point": 120}


@pytest.mark.parametrize("compiled", [False, True])
def test_matmul_with_a_scale_for_each_output(compiled: bool) -> None:
    layer = nn.QLinearMatMul(5, 3, per_channel=True, weight_dtype=dtypes.int8)
    weight = RNG.integers(-99, 99, (5, 3))
    numbers = {"weight_scale": [0.02, 0.03, 0.05], "weight_zero_point": [1, 0, -4]}
    loaded(layer, weight=weight, **numbers, **SCALES)
    x = RNG.integers(0, 255, (2, 4, 5)).astype(np.uint8)
    floats = (weight - [1, 0, -4]) * np.array([0.02, 0.03, 0.05])
    expected = rounded((x.astype(float) - 110) * 0.03 @ floats, 0.7, 120)
    y = (burn.compile(layer) if compiled else layer)(burn.tensor(x)).numpy()
    assert y.dtype == np.uint8
    assert np.abs(y.astype(float) - expected).max() <= 1  # a tie of the scales
    assert (y == expected).mean() > 0.9


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolution_of_integers(rank: int) -> None:
    options: Any = {"kernel_size": 3, "padding": 1, "stride": 2, "groups": 2}
    layer = getattr(nn, f"QLinearConv{rank}d")(4, 6, **options)
    weight = RNG.integers(0, 255, (6, 2, *(3,) * rank))
    bias = RNG.integers(-900, 900, 6)
    numbers = {"weight_scale": 0.02, "weight_zero_point": 130}
    loaded(layer, weight=weight, bias=bias, **numbers, **SCALES)
    plain = getattr(nn, f"Conv{rank}d")(4, 6, **options)
    loaded(plain, weight=(weight - 130) * 0.02, bias=bias * 0.03 * 0.02)
    x = RNG.integers(0, 255, (2, 4, *(5,) * rank)).astype(np.uint8)
    floats = plain(burn.tensor((x.astype(np.float32) - 110) * np.float32(0.03)))
    y = layer(burn.tensor(x)).numpy().astype(float)
    expected = rounded(floats.numpy(), 0.7, 120)
    assert np.abs(y - expected).max() <= 1
    assert (y == expected).mean() > 0.9
