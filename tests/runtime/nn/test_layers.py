"""Layers: their values by naive formulas, their keys and their shapes."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import nn, ops
from tests.runtime.onnx_node import normal, run_node


def keys(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: box.shape for name, box in module.boxes()}


def test_linear() -> None:
    layer = nn.Linear(5, 3)
    x = normal(2, 4, 5)
    expected = x @ layer.weight.numpy().T + layer.bias.numpy()  # type: ignore[union-attr]
    np.testing.assert_allclose(layer(burn.from_numpy(x)).numpy(), expected, rtol=1e-5)
    assert keys(layer) == {"weight": (3, 5), "bias": (3,)}
    assert keys(nn.Linear(5, 3, bias=False)) == {"weight": (3, 5)}


def test_swiglu() -> None:
    layer = nn.SwiGLU(5, 3)
    x = normal(2, 4, 5)
    inner = x @ layer.linear_inner.weight.numpy().T
    outer = x @ layer.linear_outer.weight.numpy().T
    expected = inner / (1 + np.exp(-inner)) * outer
    np.testing.assert_allclose(layer(burn.from_numpy(x)).numpy(), expected, rtol=1e-5)
    assert keys(layer) == {"linear_inner.weight": (3, 5), "linear_outer.weight": (3, 5)}


def test_first_values_are_pytorchs() -> None:
    layer = nn.Conv2d(16, 64, (3, 2), groups=4)
    bound = 1 / np.sqrt(16 // 4 * 6)
    for values in (layer.weight.numpy(), layer.bias.numpy()):  # type: ignore[union-attr]
        assert np.abs(values).max() <= bound
        assert np.abs(values).max() > 0.9 * bound
        assert abs(values.mean()) < 0.2 * bound
    nn.init.seed(3)
    first = nn.Conv2d(4, 6, 3).weight.numpy()
    nn.init.seed(3)
    np.testing.assert_array_equal(nn.Conv2d(4, 6, 3).weight.numpy(), first)
    assert (nn.Conv2d(4, 6, 3).weight.numpy() != first).any()


CONVS: list[Any] = [
    (nn.Conv1d, "Conv", (2, 4, 9), (3,)),
    (nn.Conv2d, "Conv", (2, 4, 9, 7), (3, 2)),
    (nn.Conv3d, "Conv", (2, 4, 5, 7, 6), (3, 2, 2)),
    (nn.ConvTranspose1d, "ConvTranspose", (2, 4, 5), (3,)),
    (nn.ConvTranspose2d, "ConvTranspose", (2, 4, 5, 3), (3, 2)),
    (nn.ConvTranspose3d, "ConvTranspose", (2, 4, 3, 4, 2), (3, 2, 2)),
]


@pytest.mark.parametrize("case", CONVS, ids=lambda case: case[0].__name__)
def test_convolutions_are_onnxruntimes(case: Any) -> None:
    kind, op, shape, kernel = case
    rank = len(kernel)
    more = {"output_padding": 1} if op == "ConvTranspose" else {}
    layer = kind(4, 6, kernel, stride=2, padding=1, groups=2, dilation=1, **more)
    x = normal(*shape)
    attributes: dict[str, Any] = {name: [1] * rank for name in more}
    expected = run_node(
        op,
        x,
        layer.weight.numpy(),
        layer.bias.numpy(),
        strides=[2] * rank,
        pads=[1] * (2 * rank),
        group=2,
        **attributes,
    )[0]
    actual = layer(burn.from_numpy(x)).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    first = (6, 2) if op == "Conv" else (4, 3)
    assert keys(layer) == {"weight": (*first, *kernel), "bias": (6,)}
    assert "stride=2" in repr(layer)


def test_convolutions_refuse_channels_that_do_not_divide() -> None:
    with pytest.raises(ValueError, match="multiples of 3 groups, got 4 and 6"):
        nn.Conv2d(4, 6, 3, groups=3)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("masked", [False, True])
def test_deformable_convolutions_are_onnxruntimes(parts: int, masked: bool) -> None:
    layer: Any = nn.DeformConv2d(4, 6, (3, 2), stride=2, padding=1, groups=2)
    assert keys(layer) == {"weight": (6, 2, 3, 2), "bias": (6,)}
    x, offset = normal(2, 4, 7, 6), normal(2, 12 * parts, 4, 4, seed=1)
    given = [offset] + ([normal(2, 6 * parts, 4, 4, seed=2)] if masked else [])
    actual = layer(*(burn.from_numpy(array) for array in (x, *given))).numpy()
    operands = [x, layer.weight.numpy(), offset, layer.bias.numpy(), *given[1:]]
    attributes: dict[str, Any] = {"strides": [2, 2], "pads": [1] * 4}
    expected = run_node(
        *("DeformConv", *operands),
        opset=22,
        group=2,
        offset_group=parts,
        kernel_shape=[3, 2],
        **attributes,
    )[0]
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    t = burn.from_numpy(x)
    with pytest.raises(ValueError, match="expected 12 channels of offsets, or a"):
        layer(t, burn.from_numpy(offset[:, :7]))
    with pytest.raises(ValueError, match="channels of the mask, got 5"):
        layer(t, burn.from_numpy(offset), burn.from_numpy(offset[:, :5]))


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        (nn.BatchNorm1d, (6, 4)),
        (nn.BatchNorm1d, (3, 4, 5)),
        (nn.BatchNorm2d, (3, 4, 5, 2)),
        (nn.BatchNorm3d, (3, 4, 5, 2, 3)),
    ],
)
def test_batch_norm_in_training_and_after(kind: Any, shape: Any) -> None:
    x = normal(*shape) * 2 + 1
    axes, beside = (0, *range(2, len(shape))), (-1, *(1 for _ in shape[2:]))
    layer = kind(4, eps=0.01, momentum=0.3).to(burn.Autodiff(burn.Cpu()))
    layer.weight.set(burn.from_numpy(normal(4, seed=1)))
    layer.bias.set(burn.from_numpy(normal(4, seed=2)))

    def expected(mean: Any, var: Any) -> Any:
        y = (x - mean.reshape(beside)) / np.sqrt(var.reshape(beside) + 0.01)
        y = y * normal(4, seed=1).reshape(beside)
        return y + normal(4, seed=2).reshape(beside)

    mean, var = x.mean(axes), x.var(axes)
    trained = layer(burn.from_numpy(x))
    np.testing.assert_allclose(trained.numpy(), expected(mean, var), 1e-4, 1e-5)
    unbiased = x.var(axes, ddof=1)
    np.testing.assert_allclose(layer.running_mean.numpy(), 0.3 * mean, 1e-5, 1e-6)
    np.testing.assert_allclose(layer.running_var.numpy(), 0.7 + 0.3 * unbiased, 1e-5)

    valid = layer.valid()
    actual = valid(burn.from_numpy(x)).numpy()
    running = expected(layer.running_mean.numpy(), layer.running_var.numpy())
    np.testing.assert_allclose(actual, running, rtol=1e-4, atol=1e-5)
    version = valid.running_mean.version
    valid(burn.from_numpy(x))
    assert valid.running_mean.version == version
    assert list(keys(layer)) == ["weight", "bias", "running_mean", "running_var"]


def test_batch_norm_gradients_reach_its_parameters() -> None:
    layer = nn.BatchNorm2d(4).to(burn.Autodiff(burn.Cpu()))
    weight = burn.from_numpy(normal(3, 4, 5, 2, seed=3))
    x = normal(3, 4, 5, 2)
    grads = (layer(burn.from_numpy(x)) * weight).sum().backward()
    centered = x - x.mean((0, 2, 3), keepdims=True)
    norm = centered / np.sqrt(x.var((0, 2, 3), keepdims=True) + 1e-5)
    expected = (weight.numpy() * norm).sum((0, 2, 3))
    np.testing.assert_allclose(grads[layer.weight].numpy(), expected, 1e-4, 1e-5)
    total = weight.numpy().sum((0, 2, 3))
    np.testing.assert_allclose(grads[layer.bias].numpy(), total, 1e-4, 1e-5)
    assert layer.running_mean not in grads


def test_batch_norm_refuses_what_has_no_variance() -> None:
    layer = nn.BatchNorm1d(4, affine=False).to(burn.Autodiff(burn.Cpu()))
    with pytest.raises(ValueError, match=r"more than one element .* got \[1, 4\]"):
        layer(burn.from_numpy(normal(1, 4)))
    with pytest.raises(ValueError, match="expected rank 4"):
        nn.BatchNorm2d(4)(burn.from_numpy(normal(2, 4, 3)))


def test_feature_norms() -> None:
    x = normal(3, 4, 6, 5) * 2 + 1
    layer = nn.LayerNorm((6, 5), eps=0.1)
    wide = x - x.mean((2, 3), keepdims=True)
    expected = wide / np.sqrt(x.var((2, 3), keepdims=True) + 0.1)
    np.testing.assert_allclose(layer(burn.from_numpy(x)).numpy(), expected, 1e-4, 1e-5)
    assert keys(layer) == {"weight": (6, 5), "bias": (6, 5)}
    assert keys(nn.LayerNorm(5, bias=False)) == {"weight": (5,)}
    assert not keys(nn.LayerNorm(5, elementwise_affine=False))
    rms = nn.RMSNorm(5, eps=0.1)
    rms.weight.set(burn.from_numpy(normal(5, seed=1)))  # type: ignore[union-attr]
    expected = x / np.sqrt(np.square(x).mean(-1, keepdims=True) + 0.1)
    actual = rms(burn.from_numpy(x)).numpy()
    np.testing.assert_allclose(actual, expected * normal(5, seed=1), 1e-4, 1e-5)
    with pytest.raises(ValueError, match=r"last extents \(4,\), got"):
        nn.LayerNorm(4)(burn.from_numpy(x))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rms_norm_takes_its_epsilon_from_the_dtype(dtype: type) -> None:
    epsilon = float(np.finfo(dtype).eps)
    # As large as epsilon, so that it counts.
    x = (normal(3, 4, 5) * np.sqrt(epsilon)).astype(dtype)
    actual = nn.RMSNorm(5, elementwise_affine=False)(burn.from_numpy(x)).numpy()
    wide = x.astype(np.float64)
    expected = wide / np.sqrt(np.square(wide).mean(-1, keepdims=True) + epsilon)
    assert actual.dtype == dtype
    np.testing.assert_allclose(actual, expected, 2 * epsilon + 1e-6)


def test_channel_norms() -> None:
    x = normal(3, 4, 6, 5) * 2 + 1
    t = burn.from_numpy(x)
    ones, zeros = np.ones(4, np.float32), np.zeros(4, np.float32)
    expected = run_node("InstanceNormalization", x, ones, zeros, epsilon=0.1)[0]
    for layer in (
        nn.InstanceNorm2d(4, eps=0.1),
        nn.InstanceNorm2d(4, eps=0.1, affine=True),
        nn.GroupNorm(4, 4, eps=0.1),
    ):
        np.testing.assert_allclose(layer(t).numpy(), expected, rtol=1e-4, atol=1e-5)
    group = nn.GroupNorm(2, 4, eps=0.1)
    np.testing.assert_allclose(
        group(t).numpy(),
        ops.group_norm(t, groups=2, epsilon=0.1).numpy(),
        rtol=1e-6,
        atol=1e-6,
    )
    assert keys(group) == {"weight": (4,), "bias": (4,)}
    local = nn.LocalResponseNorm(3, alpha=0.4, beta=0.6, k=1.5)
    expected = run_node("LRN", x, size=3, alpha=0.4, beta=0.6, bias=1.5)[0]
    np.testing.assert_allclose(local(t).numpy(), expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="multiple of 3 groups, got 4"):
        nn.GroupNorm(3, 4)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pools(rank: int) -> None:
    x = normal(2, 3, *(7, 6, 8)[:rank])
    t = burn.from_numpy(x)
    window: Any = {"kernel_shape": [2] * rank, "strides": [2] * rank, "opset": 19}
    largest = (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)[rank - 1]
    average = (nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d)[rank - 1]
    adaptive = (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d)
    expected = run_node("MaxPool", x, **window)[0]
    np.testing.assert_array_equal(largest(2)(t).numpy(), expected)
    pads = [1] * (2 * rank)
    expected = run_node("AveragePool", x, pads=pads, count_include_pad=1, **window)[0]
    actual = average(2, padding=1)(t).numpy()
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
    expected = run_node("AveragePool", x, pads=pads, ceil_mode=1, **window)[0]
    counted = average(2, padding=1, ceil_mode=True, count_include_pad=False)
    np.testing.assert_allclose(counted(t).numpy(), expected, rtol=1e-5, atol=1e-6)
    mean = x.mean(tuple(range(2, rank + 2)))
    actual = adaptive[rank - 1](1)(t).numpy().reshape(2, 3)
    np.testing.assert_allclose(actual, mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(nn.GlobalAvgPool()(t).numpy(), mean, 1e-5, 1e-6)
    assert nn.GlobalAvgPool(keepdims=True)(t).shape == (2, 3, *(1,) * rank)
    with pytest.raises(ValueError, match=f"expected rank {rank + 2}"):
        largest(2)(burn.from_numpy(x[0]))


def test_activations() -> None:
    x = normal(3, 4, 5) * 2
    t = burn.from_numpy(x)
    slope = normal(4, seed=1)
    prelu = nn.PReLU(4)
    assert (prelu.weight.numpy() == 0.25).all()
    prelu.weight.set(burn.from_numpy(slope))
    expected = np.where(x > 0, x, x * slope[:, None])
    np.testing.assert_allclose(prelu(t).numpy(), expected, rtol=1e-6)
    gate = 1 / (1 + np.exp(-x))
    soft = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    for layer, values in (
        (nn.ReLU(), np.maximum(x, 0)),
        (nn.Sigmoid(), gate),
        (nn.Tanh(), np.tanh(x)),
        (nn.SiLU(), x * gate),
        (nn.LeakyReLU(0.3), np.where(x > 0, x, 0.3 * x)),
        (nn.ELU(1.5), np.where(x > 0, x, 1.5 * np.expm1(x))),
        (nn.GELU(), run_node("Gelu", x, opset=20)[0]),
        (nn.GELU("tanh"), run_node("Gelu", x, opset=20, approximate="tanh")[0]),
        (nn.Softmax(1), soft),
    ):
        np.testing.assert_allclose(layer(t).numpy(), values, rtol=1e-5, atol=1e-6)


def first_result(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda d: nn.Linear(4, 3, dtype=d), (2, 4)),
        (lambda d: nn.Conv1D(3, 4, dtype=d), (2, 4)),
        (lambda d: nn.Conv2d(4, 6, 3, dtype=d), (2, 4, 5, 5)),
        (lambda d: nn.ConvTranspose1d(4, 6, 3, dtype=d), (2, 4, 5)),
        (lambda d: nn.LayerNorm(4, dtype=d), (2, 4)),
        (lambda d: nn.RMSNorm(4, dtype=d), (2, 4)),
        (lambda d: nn.GroupNorm(2, 4, dtype=d), (2, 4, 5)),
        (lambda d: nn.InstanceNorm1d(4, affine=True, dtype=d), (2, 4, 5)),
        (lambda d: nn.LSTM(4, 3, bidirectional=True, dtype=d), (5, 2, 4)),
        (lambda d: nn.GRU(4, 3, num_layers=2, dtype=d), (5, 2, 4)),
        (lambda d: nn.RNN(4, 3, dtype=d), (5, 2, 4)),
        (lambda d: nn.LSTMCell(4, 3, dtype=d), (2, 4)),
        (lambda d: nn.GRUCell(4, 3, dtype=d), (2, 4)),
        (lambda d: nn.RNNCell(4, 3, dtype=d), (2, 4)),
    ],
)
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_parameters_and_results_have_the_dtype(
    make: Any, shape: tuple[int, ...], dtype: type
) -> None:
    module = make(np.dtype(dtype))
    assert {box.dtype for _, box in module.boxes()} == {np.dtype(dtype)}
    x = np.random.default_rng(0).standard_normal(shape)
    first = first_result(module(burn.tensor(x.astype(dtype))))
    assert first.dtype == dtype
    plain = make(np.dtype(np.float64))
    values = module.state_dict().items()
    state = {key: burn.tensor(value.numpy().astype("d")) for key, value in values}
    expected = first_result(plain.load_state_dict(state)(burn.tensor(x)))
    np.testing.assert_allclose(first.numpy(), expected.numpy(), rtol=0.02, atol=0.02)
