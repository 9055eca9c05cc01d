"""Layers with quantized weights, and rounding to quantized numbers."""

from typing import Any, TypeVar

import numpy as np
import pytest

import burn
from burn import dtypes, nn, ops
from tests.modules import Array

RNG = np.random.default_rng(5)
Layer = TypeVar("Layer", bound=nn.Module)


def loaded(layer: Layer, **numbers: Any) -> Layer:
    """Return ``layer`` with ``numbers`` as state."""
    own = layer.state_dict()
    given = {key: np.asarray(n, own[key].dtype) for key, n in numbers.items()}
    layer.load_state_dict({**own, **given})
    return layer


def integers(*shape: int) -> Array:
    return RNG.integers(-99, 99, shape).astype(np.int8)


def test_quantizer_rounds_and_clips() -> None:
    layer = loaded(nn.QuantizeDequantize(), scale=0.5, zero_point=4)
    x = np.array([-3.0, -0.3, 0.2, 1.26, 500.0], np.float32)
    y = layer(burn.tensor(x)).numpy()
    np.testing.assert_array_equal(y, np.array([-2, -0.5, 0, 1.5, 125.5], np.float32))


def test_quantizer_without_zero_point() -> None:
    layer = nn.QuantizeDequantize(dtypes.int8, zero_point=False, dtype=dtypes.float16)
    assert list(layer.state_dict()) == ["scale"]
    y = loaded(layer, scale=0.25)(burn.tensor(np.array([-90, 0.3], np.float16)))
    assert y.dtype == dtypes.float16
    np.testing.assert_array_equal(y.numpy(), np.array([-32, 0.25], np.float16))


@pytest.mark.parametrize("compiled", [False, True])
def test_linear_with_a_scale_for_each_output(compiled: bool) -> None:
    layer = nn.WeightQuantizedLinear(6, 3, per_channel=True, zero_point=True)
    weight, scale, zeros = integers(3, 6), np.array([0.1, 0.2, 0.4]), [1, -2, 3]
    bias = RNG.standard_normal(3).astype(np.float32)
    loaded(layer, weight=weight, scale=scale, zero_point=zeros, bias=bias)
    x = RNG.standard_normal((2, 4, 6)).astype(np.float32)
    floats = (weight.astype(np.float32) - np.array(zeros)[:, None]) * scale[:, None]
    call = burn.compile(layer) if compiled else layer
    y = call(burn.tensor(x)).numpy()
    np.testing.assert_allclose(y, x @ floats.T + bias, rtol=1e-4, atol=1e-4)


def test_gradients_are_those_of_the_float_layer() -> None:
    layer = nn.WeightQuantizedLinear(6, 3)
    loaded(layer, weight=integers(3, 6), scale=0.1).to(burn.Autodiff(burn.Cpu()))
    x = burn.tensor(RNG.standard_normal((5, 6)).astype(np.float32))
    grads = ops.sum(layer(x)).backward()
    np.testing.assert_array_equal(grads[layer.bias].numpy(), np.full(3, 5, np.float32))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolution_is_that_of_dequantized_weights(rank: int) -> None:
    options: Any = {"kernel_size": 3, "padding": 1, "stride": 2, "groups": 2}
    layer = getattr(nn, f"WeightQuantizedConv{rank}d")(
        4, 6, **options, per_channel=True
    )
    weight, scale = integers(6, 2, *(3,) * rank), RNG.uniform(0.1, 1, 6)
    bias = RNG.standard_normal(6).astype(np.float32)
    loaded(layer, weight=weight, scale=scale, bias=bias)
    scales = scale.astype(np.float32).reshape(-1, *(1,) * (rank + 1))
    plain = getattr(nn, f"Conv{rank}d")(4, 6, **options)
    loaded(plain, weight=weight.astype(np.float32) * scales, bias=bias)
    x = burn.tensor(RNG.standard_normal((2, 4, *(5,) * rank)).astype(np.float32))
    np.testing.assert_allclose(layer(x).numpy(), plain(x).numpy(), rtol=1e-4, atol=1e-3)


def test_embedding_dequantizes_the_rows() -> None:
    layer = nn.WeightQuantizedEmbedding(9, 4)
    table = RNG.integers(0, 255, (9, 4)).astype(np.uint8)
    loaded(layer, weight=table, scale=0.5, zero_point=7)
    rows = layer(burn.tensor(np.array([[3, 8], [0, 3]]))).numpy()
    expected = (table[[[3, 8], [0, 3]]].astype(np.float32) - 7) / 2
    np.testing.assert_array_equal(rows, expected)
    assert repr(layer) == "WeightQuantizedEmbedding(9, 4)"
