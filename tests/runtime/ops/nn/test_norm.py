"""Norms against onnxruntime, their formulas and the gradient law."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from tests.runtime.gradcheck import check_gradient
from tests.runtime.onnx_node import normal, run_node

SHAPES = [(5, 4), (3, 4, 7), (2, 4, 5, 3), (2, 4, 3, 2, 5)]


def tensors(*arrays: Any) -> list[Any]:
    return [None if a is None else burn.from_numpy(a) for a in arrays]


def batch_arrays(shape: Any) -> list[Any]:
    x, *rest = normal(*shape), *(normal(shape[1], seed=i) for i in range(1, 5))
    weight, bias, mean, var = rest
    return [x * 3 + 1, weight, bias, mean, np.square(var) + 0.1]


@pytest.mark.parametrize("opset", [9, 14, 15])
@pytest.mark.parametrize("shape", SHAPES)
def test_batch_norm_is_onnxruntimes(shape: Any, opset: int) -> None:
    x, weight, bias, mean, var = batch_arrays(shape)
    expected = run_node(
        "BatchNormalization", x, weight, bias, mean, var, opset=opset, epsilon=0.01
    )
    actual = ops.batch_norm(*tensors(x, mean, var, weight, bias), epsilon=0.01)
    np.testing.assert_allclose(actual.numpy(), expected[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
def test_batch_norm_gradients(shape: Any) -> None:
    x, weight, bias, mean, var = batch_arrays(shape)
    check_gradient(
        lambda *a: ops.batch_norm(*a, epsilon=0.01), x, mean, var, weight, bias
    )
    check_gradient(lambda *a: ops.batch_norm(*a), x, mean, var)
    check_gradient(
        lambda x, m, v, b: ops.batch_norm(x, m, v, None, b), x, mean, var, bias
    )


@pytest.mark.parametrize("memory", ["channels-first", "channels-last"])
@pytest.mark.parametrize("shape", SHAPES)
def test_batch_norm_train(shape: Any, memory: str) -> None:
    x, weight, bias, _, _ = batch_arrays(shape)
    if memory == "channels-last":
        x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    axes = (0, *range(2, len(shape)))
    beside = (-1, *(1 for _ in shape[2:]))
    result = ops.batch_norm_train(*tensors(x, weight, bias), epsilon=0.01)
    wide = x.astype(np.float64)
    mean, var = wide.mean(axes), wide.var(axes)
    expected = (wide - mean.reshape(beside)) / np.sqrt(var.reshape(beside) + 0.01)
    expected = expected * weight.reshape(beside) + bias.reshape(beside)
    for part, value in zip(result, (expected, mean, var), strict=True):
        np.testing.assert_allclose(part.numpy(), value, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_batch_norm_train_gradients(shape: Any) -> None:
    x, weight, bias, _, _ = batch_arrays(shape)
    check_gradient(lambda *a: ops.batch_norm_train(*a, epsilon=0.01), x, weight, bias)
    check_gradient(lambda *a: ops.batch_norm_train(*a)[0], x, weight, bias)
    check_gradient(lambda *a: ops.batch_norm_train(*a)[1:], x)


@pytest.mark.parametrize("axis", [-1, 1, -2, 0])
def test_layer_norm_is_onnxruntimes(axis: int) -> None:
    x = normal(3, 4, 2, 5) * 2 + 1
    weight, bias = normal(*x.shape[axis:], seed=1), normal(*x.shape[axis:], seed=2)
    expected = run_node(
        "LayerNormalization", x, weight, bias, axis=axis, epsilon=0.1, opset=17
    )
    actual = ops.layer_norm(*tensors(x, weight, bias), axis=axis, epsilon=0.1)
    np.testing.assert_allclose(actual.numpy(), expected[0], rtol=1e-4, atol=1e-5)


def test_rms_norm_is_its_formula() -> None:
    x, weight = normal(3, 4, 2, 5) * 2 + 1, normal(2, 5, seed=1)
    power = np.square(x.astype(np.float64)).mean((2, 3), keepdims=True)
    actual = ops.rms_norm(*tensors(x, weight), axis=-2, epsilon=0.1)
    expected = x / np.sqrt(power + 0.1) * weight
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("axis", [-1, (1, 3), (0,)])
@pytest.mark.parametrize("weights", [0, 1, 2])
def test_feature_norm_gradients(axis: Any, weights: int) -> None:
    arrays = [normal(3, 4, 2, 5), normal(4, 1, 5, seed=1), normal(5, seed=2)]
    check_gradient(
        lambda *a: ops.layer_norm(*a, axis=axis, epsilon=0.1), *arrays[: weights + 1]
    )
    if weights < 2:
        check_gradient(
            lambda *a: ops.rms_norm(*a, axis=axis, epsilon=0.1), *arrays[: weights + 1]
        )


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_group_norm(groups: int) -> None:
    x, weight, bias = normal(2, 4, 5, 3) + 1, normal(4, seed=1), normal(4, seed=2)
    parts = x.astype(np.float64).reshape(2, groups, -1)
    parts = (parts - parts.mean(-1, keepdims=True)) / np.sqrt(
        parts.var(-1, keepdims=True) + 0.1
    )
    expected = parts.reshape(x.shape) * weight[:, None, None] + bias[:, None, None]
    actual = ops.group_norm(*tensors(x, weight, bias), groups=groups, epsilon=0.1)
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-5, atol=1e-5)
    check_gradient(
        lambda *a: ops.group_norm(*a, groups=groups, epsilon=0.1), x, weight, bias
    )
    check_gradient(lambda a: ops.group_norm(a, groups=groups), x)


@pytest.mark.parametrize("opset", [6, 22])
@pytest.mark.parametrize("shape", SHAPES[1:])
def test_instance_norm_is_onnxruntimes(shape: Any, opset: int) -> None:
    x, weight, bias, _, _ = batch_arrays(shape)
    expected = run_node(
        "InstanceNormalization", x, weight, bias, epsilon=0.1, opset=opset
    )
    actual = ops.instance_norm(*tensors(x, weight, bias), epsilon=0.1)
    np.testing.assert_allclose(actual.numpy(), expected[0], rtol=1e-4, atol=1e-4)
    check_gradient(lambda *a: ops.instance_norm(*a, epsilon=0.1), x, weight, bias)


@pytest.mark.parametrize("opset", [1, 13])
@pytest.mark.parametrize("size", [1, 3, 5])
def test_lrn_is_onnxruntimes(size: int, opset: int) -> None:
    x = normal(2, 6, 4, 3)
    static: Any = {"size": size, "alpha": 0.5, "beta": 0.6, "bias": 2.0}
    expected = run_node("LRN", x, opset=opset, **static)
    actual = ops.lrn(burn.from_numpy(x), **static)
    np.testing.assert_allclose(actual.numpy(), expected[0], rtol=1e-5, atol=1e-6)
    check_gradient(lambda t: ops.lrn(t, **static), x)


@pytest.mark.parametrize("size", [2, 4])
def test_lrn_of_even_size_takes_more_channels_after(size: int) -> None:
    x = normal(2, 6, 4, 3)
    squares = np.square(x)
    total = np.zeros_like(x)
    for channel in range(6):
        start = max(channel - (size - 1) // 2, 0)
        total[:, channel] = squares[:, start : channel + size // 2 + 1].sum(1)
    actual = ops.lrn(burn.from_numpy(x), size=size, alpha=0.5, beta=0.6)
    expected = x / (1 + 0.5 / size * total) ** 0.6
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [burn.float16, burn.bfloat16])
def test_halves_keep_their_dtype_and_take_statistics_in_float32(dtype: Any) -> None:
    x = (normal(2, 300, 7) * 8 + 40).astype(dtype)
    wide = x.astype(np.float32)
    for kind in (ops.layer_norm, ops.rms_norm, ops.instance_norm):
        actual = kind(burn.from_numpy(x))
        assert actual.dtype == dtype
        expected = kind(burn.from_numpy(wide)).numpy()
        np.testing.assert_allclose(actual.numpy().astype(np.float32), expected, 1e-2)


def test_gradients_of_one_axis_are_those_of_one_channel() -> None:
    x, one = normal(5), np.ones(1)
    check_gradient(lambda *a: ops.batch_norm_train(*a, epsilon=0.1), x, one, one)
    check_gradient(lambda *a: ops.batch_norm_train(*a)[1:], x)
    check_gradient(lambda *a: ops.batch_norm(*a, epsilon=0.1), x, one, one, one, one)
