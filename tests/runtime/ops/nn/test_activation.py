"""Activations against onnxruntime, their limits and the gradient law."""

import math
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from tests.runtime.gradcheck import check_gradient
from tests.runtime.onnx_node import normal, run_node

# burn's name, ONNX's, attributes of burn, attributes of ONNX, opsets.
CASES: list[Any] = [
    (ops.relu, "Relu", {}, {}, (6, 14)),
    (ops.leaky_relu, "LeakyRelu", {"alpha": 0.3}, None, (6, 16)),
    (ops.leaky_relu, "LeakyRelu", {"alpha": 1.5}, None, (16,)),
    (ops.thresholded_relu, "ThresholdedRelu", {"alpha": 0.7}, None, (10, 22)),
    (ops.elu, "Elu", {"alpha": 1.7}, None, (6, 22)),
    (ops.selu, "Selu", {"alpha": 1.2, "gamma": 1.6}, None, (6, 22)),
    (ops.selu, "Selu", {}, {}, (22,)),
    (ops.celu, "Celu", {"alpha": 1.7}, None, (12,)),
    (ops.sigmoid, "Sigmoid", {}, {}, (6, 13)),
    (ops.tanh, "Tanh", {}, {}, (6, 13)),
    (ops.softplus, "Softplus", {}, {}, (1, 22)),
    (ops.softsign, "Softsign", {}, {}, (1, 22)),
    (ops.hard_sigmoid, "HardSigmoid", {"alpha": 0.4, "beta": 0.6}, None, (6, 22)),
    (ops.hard_swish, "HardSwish", {}, {}, (14, 22)),
    (ops.mish, "Mish", {}, {}, (18, 22)),
    (ops.gelu, "Gelu", {"approximate": "none"}, None, (20,)),
    (ops.gelu, "Gelu", {"approximate": "tanh"}, None, (20,)),
    (ops.shrink, "Shrink", {"bias": 0.2, "lambd": 0.6}, None, (9,)),
    (ops.softmax, "Softmax", {"axis": 1}, None, (13,)),
    (ops.log_softmax, "LogSoftmax", {"axis": -3}, None, (13,)),
]


def names(case: Any) -> str:
    return f"{case[1]}-{case[2]}" if isinstance(case, tuple) else ""


@pytest.mark.parametrize("case", CASES, ids=names)
def test_values_are_onnxruntimes(case: Any) -> None:
    fn, op, static, attributes, opsets = case
    x = normal(3, 4, 5, 2) * 3
    actual = fn(burn.from_numpy(x), **static)
    for opset in opsets:
        given = static if attributes is None else attributes
        expected = run_node(op, x, opset=opset, **given)[0]
        np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-5, atol=2e-6)
    assert actual.dtype == burn.float32


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_quick_gelu(dtype: Any) -> None:
    x = (normal(3, 4, 5) * 3).astype(dtype)
    actual = ops.quick_gelu(burn.from_numpy(x)).numpy()
    wide = x.astype(np.float64)
    expected = wide / (1 + np.exp(-1.702 * wide))
    rtol = max(1e-6, 4 * float(np.finfo(dtype).eps))
    np.testing.assert_allclose(actual, expected, rtol=rtol)
    assert actual.dtype == dtype


#: Activations without an operator of ONNX.
OTHERS: list[Any] = [(ops.silu, "Silu", {}), (ops.quick_gelu, "QuickGelu", {})]


@pytest.mark.parametrize("case", [*CASES, *OTHERS], ids=names)
def test_gradients(case: Any) -> None:
    fn, static = case[0], case[2]
    check_gradient(lambda x: fn(x, **static), normal(3, 4, 5) * 2)


#: What the formulas give at minus infinity and at infinity: 0 * -inf is NaN.
AT_INFINITIES: list[Any] = [
    (ops.relu, 0, math.inf),
    (ops.leaky_relu, -math.inf, math.inf),
    (ops.elu, -1, math.inf),
    (ops.celu, -1, math.inf),
    (ops.selu, -1.7580993408473766, math.inf),
    (ops.sigmoid, 0, 1),
    (ops.tanh, -1, 1),
    (ops.softplus, 0, math.inf),
    (ops.softsign, math.nan, math.nan),
    (ops.hard_sigmoid, 0, 1),
    (ops.hard_swish, math.nan, math.inf),
    (ops.silu, math.nan, math.inf),
    (ops.quick_gelu, math.nan, math.inf),
    (ops.mish, math.nan, math.inf),
    (ops.gelu, math.nan, math.inf),
    (lambda x: ops.gelu(x, approximate="tanh"), math.nan, math.inf),
    (ops.shrink, -math.inf, math.inf),
    (ops.thresholded_relu, 0, math.inf),
]


@pytest.mark.parametrize("size", [6, 1 << 16])
@pytest.mark.parametrize("case", AT_INFINITIES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_not_finite_elements_and_the_largest(case: Any, dtype: Any, size: int) -> None:
    fn, low, high = case
    largest = np.finfo(dtype).max
    x = np.zeros((1, 1, size), dtype)
    x[..., :6] = -np.inf, -largest, 0, largest, np.inf, np.nan
    actual = fn(burn.from_numpy(x)).numpy()[0, 0]
    assert actual.dtype == dtype
    np.testing.assert_allclose(actual[[0, 4]], [low, high], rtol=1e-3)
    assert not np.isnan(actual[1:4]).any()
    if fn is not ops.thresholded_relu and fn is not ops.shrink:
        assert np.isnan(actual[5])


@pytest.mark.parametrize(
    "case", [case for case in AT_INFINITIES if case[0] is not ops.quick_gelu]
)
def test_half_types_are_rounded_once(case: Any) -> None:
    x = (normal(4, 3, 5) * 2).astype(burn.bfloat16)
    actual = case[0](burn.from_numpy(x))
    expected = case[0](burn.from_numpy(x.astype(np.float32))).numpy()
    assert actual.dtype == burn.bfloat16
    np.testing.assert_array_equal(actual.numpy(), expected.astype(burn.bfloat16))


@pytest.mark.parametrize("case", AT_INFINITIES)
def test_rank_zero(case: Any) -> None:
    actual = case[0](burn.tensor(0.75)).numpy()
    many = case[0](burn.tensor([0.75])).numpy()
    assert actual.shape == () and actual == many[0]


@pytest.mark.parametrize("opset", [7, 9, 16])
@pytest.mark.parametrize("shape", [(4, 1, 1), (1,), (3, 4, 2, 5)])
def test_prelu(shape: Any, opset: int) -> None:
    x, slope = normal(3, 4, 2, 5), normal(*shape, seed=1)
    actual = ops.prelu(burn.from_numpy(x), burn.from_numpy(slope))
    expected = run_node("PRelu", x, slope, opset=opset)[0]
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-6)
    check_gradient(ops.prelu, x, slope)


def test_prelu_of_not_finite_slopes() -> None:
    x = np.array([0, -0.0, 1, -1, np.nan, np.inf], np.float32)
    for slope in (np.inf, np.nan):
        slopes = np.full(6, slope, np.float32)
        expected = run_node("PRelu", x, slopes, opset=16)[0]
        actual = ops.prelu(burn.from_numpy(x), burn.from_numpy(slopes))
        np.testing.assert_array_equal(actual.numpy(), expected)


@pytest.mark.parametrize("bounds", [(-0.5, 0.75), (None, 0.25), (-0.5, None)])
def test_clip(bounds: Any) -> None:
    x = normal(3, 4, 5)
    given = [None if b is None else np.array(b, np.float32) for b in bounds]
    expected = run_node("Clip", x, *given, opset=13)[0]
    actual = ops.clip(burn.from_numpy(x), *bounds)
    np.testing.assert_array_equal(actual.numpy(), expected)

    def clipped(t: Any, *rest: Any) -> Any:
        left = iter(rest)
        low, high = (None if b is None else next(left) for b in bounds)
        return ops.clip(t, low, high)

    check_gradient(clipped, x, *(g for g in given if g is not None))


def test_clip_of_integers_and_of_crossed_bounds() -> None:
    x = burn.tensor([[[-5, 0, 7]]])
    assert ops.clip(x, -2, 3).tolist() == [[[-2, 0, 3]]]
    assert ops.clip(x, 3, -2).tolist() == [[[-2, -2, -2]]]
    assert ops.relu(x).tolist() == [[[0, 0, 7]]]
    assert ops.relu(x).dtype == burn.int64


@pytest.mark.parametrize("axis", [1, (0, 2), (1, 2)])
def test_softmax_over_several_axes(axis: Any) -> None:
    x = normal(3, 4, 5) * 3
    wide = np.exp(x.astype(np.float64))
    total = wide.sum(axis, keepdims=True)
    t = burn.from_numpy(x)
    soft, log = ops.softmax(t, axis=axis), ops.log_softmax(t, axis=axis)
    np.testing.assert_allclose(soft.numpy(), wide / total, rtol=1e-5)
    np.testing.assert_allclose(log.numpy(), np.log(wide / total), rtol=1e-5, atol=1e-5)
    check_gradient(lambda a: ops.softmax(a, axis=axis), x)
    check_gradient(lambda a: ops.log_softmax(a, axis=axis), x)
    for keepdims in (False, True):
        actual = ops.logsumexp(t, axis, keepdims=keepdims)
        expected = np.log(wide.sum(axis, keepdims=keepdims))
        np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-5)
        check_gradient(lambda a, k=keepdims: ops.logsumexp(a, axis, keepdims=k), x)


def test_softmax_at_extremes() -> None:
    low, high, nan = -np.inf, np.inf, np.nan
    rows = [[1e30, 1e30, low], [3e38, -3e38, 0]]
    rows += [[low, low, low], [high, 1, low], [high, high, 1], [nan, 1, high]]
    x = burn.from_numpy(np.array([rows], np.float32))
    soft = ops.softmax(x).numpy()[0]
    np.testing.assert_array_equal(soft[:2], [[0.5, 0.5, 0], [1, 0, 0]])
    assert np.isnan(soft[2:]).all()
    assert np.isnan(ops.log_softmax(x).numpy()[0, 2:]).all()
    total = ops.logsumexp(x, -1).numpy()[0]
    np.testing.assert_allclose(total, [1e30, 3e38, low, high, high, nan], rtol=1e-6)
    np.testing.assert_array_equal(ops.logsumexp(x[:, 3:5]).numpy(), high)
    assert ops.logsumexp(x).shape == ()


@pytest.mark.parametrize("columns", [3, 700])
@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax"])
def test_a_row_with_infinity_is_that_of_onnxruntime(name: str, columns: int) -> None:
    x = normal(40, columns)
    x[0, 1], x[3, 0], x[5, 2], x[7] = np.inf, -np.inf, np.nan, -np.inf
    expected = run_node(name, x, opset=13)[0]
    op = {"Softmax": ops.softmax, "LogSoftmax": ops.log_softmax}[name]
    actual = op(burn.from_numpy(x)).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_empty_softmax() -> None:
    assert ops.softmax(burn.from_numpy(np.ones((2, 0, 3), np.float32))).shape[1] == 0


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_the_slope_of_gelu_at_infinity(approximate: Any) -> None:
    tape = burn.Autodiff(burn.Cpu())
    x = burn.from_numpy(np.array([-np.inf, np.inf], np.float32), tape).require_grad()
    loss = ops.gelu(x, approximate=approximate).sum()
    np.testing.assert_array_equal(loss.backward()[x].numpy(), [0, 1])
