"""Kernels of training on CUDA devices: sums over rows and columns, and many tensors."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.dtypes import bfloat16
from burn.ops.batch_norm_parts import channel_gradients, channel_moments
from burn.ops.elements import Element, Operand, elements_of_many
from burn.ops.layer_norm import layer_norm_grad, rms_norm_grad
from burn.ops.logic import any_nonfinite
from burn.ops.norm import batch_norm_grad, batch_norm_train
from burn.ops.softmax import softmax_grad
from tests.runtime.onnx_node import normal

pytestmark = pytest.mark.cuda
TOLERANCE = {"float32": 2e-5, "float16": 5e-3, "bfloat16": 3e-2}
DTYPES = tuple(TOLERANCE)


@pytest.fixture
def device() -> Any:
    pytest.importorskip("cupy")
    return burn.Cuda(0)


def agree(
    device: Any, function: Any, *arrays: Any, dtype: str, view: Any = None
) -> None:
    """Assert that the results equal those of the CPU in float32, relatively."""
    arrays = tuple(None if a is None else a.astype(dtype) for a in arrays)
    there = [None if a is None else burn.from_numpy(a, device) for a in arrays]
    if view is not None:
        there = [view(each) for each in there]
    actual = function(*there)
    wide = [None if a is None else a.astype("float32") for a in arrays]
    expected = function(*(None if a is None else burn.from_numpy(a) for a in wide))
    single = isinstance(expected, burn.Tensor)
    for one, other in zip(
        (actual,) if single else actual,
        (expected,) if single else expected,
        strict=True,
    ):
        assert one.shape == other.shape
        result, wanted = one.numpy().astype("float32"), other.numpy()
        scale = max(float(np.abs(wanted).max(initial=0)), 1e-3)
        assert float(np.abs(result - wanted).max(initial=0)) / scale < TOLERANCE[dtype]


def channels_last(x: Any) -> Any:
    """The same tensor with channels last in memory."""
    if x is None or x.ndim != 4:
        return x
    data = x.data.transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2)
    return burn.Tensor(data, x.backend)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((1024, 768), 0),
        ((8, 128, 96), (0, 1)),
        ((300, 65), (0,)),
        ((4097, 16), 0),
        ((33, 1000), 0),
        ((64, 2, 256), 0),
        ((64, 64, 256), 1),
        ((20000,), 0),
        ((0, 768), 0),
        ((1, 32768), 0),
    ],
)
def test_sums_of_rows(device: Any, dtype: str, shape: Any, axis: Any) -> None:
    x = normal(*shape, seed=1)
    for keepdims in (False, True):
        function = partial(ops.sum, axis=axis, keepdims=keepdims)
        agree(device, function, x, dtype=dtype)
    if 0 not in shape:
        summed = np.sum(x, axis=axis, keepdims=True).shape
        agree(device, lambda x: ops.sum_to(x, shape=summed), x, dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_of_images_with_channels_last(device: Any, dtype: str) -> None:
    x = normal(4, 24, 33, 17, seed=2)
    agree(
        *(device, lambda x: ops.sum(x, (0, 2, 3)), x),
        dtype=dtype,
        view=channels_last,
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(6, 5), (2, 8, 100), (1030, 24), (3, 4096), (2, 40000)]
)
def test_gradients_of_softmax(device: Any, dtype: str, shape: Any) -> None:
    grad, x = normal(*shape, seed=3), normal(*shape, seed=4)
    out = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    agree(device, softmax_grad, grad, out, dtype=dtype)
    agree(device, lambda g, o: softmax_grad(g, o, axis=0), grad, out, dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("gradient", [layer_norm_grad, rms_norm_grad])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((6, 5), -1),
        ((2, 8, 96), -1),
        ((1030, 768), -1),
        ((1030, 24), -1),
        ((12, 4, 10), (1, 2)),
        ((3, 4096), -1),
        ((2, 40000), -1),
        ((5, 4, 6), (1,)),
    ],
)
def test_gradients_of_norms(
    device: Any, gradient: Any, dtype: str, shape: Any, axis: Any
) -> None:
    rank = len(shape)
    axes = (axis % rank,) if isinstance(axis, int) else axis
    is_last = axes[-1] == rank - 1
    weight = normal(*(shape[a] for a in axes), seed=5)
    if not is_last:
        weight = weight.reshape(-1, *(1 for _ in shape[axes[-1] + 1 :]))
    grad, x = normal(*shape, seed=6), normal(*shape, seed=7) + 1
    for factor in (weight, None):
        agree(
            device,
            lambda g, x, w: gradient(g, x, w, axis=axis, epsilon=1e-3),
            *(grad, x, factor),
            dtype=dtype,
        )


@pytest.mark.parametrize("shape", [(2, 3), (4, 8, 5, 7), (3, 64, 9, 9), (2, 256, 3, 3)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_of_batch_norms(device: Any, dtype: str, shape: Any) -> None:
    """Images of half types, statistics of float32."""
    images = [(normal(*shape, seed=n) + n).astype(dtype) for n in (0, 1)]
    weight = normal(shape[1], seed=3)
    here = [burn.from_numpy(i.astype("float32")) for i in images]
    for is_last in (False, True):
        there = [burn.from_numpy(i, device) for i in images]
        there = [channels_last(i) for i in there] if is_last else there
        for scale in (weight, None):
            ours = None if scale is None else burn.from_numpy(scale, device)
            other = None if scale is None else burn.from_numpy(scale)
            actual = channel_moments(there[1], ours, epsilon=1e-3)
            expected = channel_moments(here[1], other, epsilon=1e-3)
            both = list(zip(actual, expected, strict=True))
            mean, var = expected[:2]
            m, v = (burn.from_numpy(each.numpy(), device) for each in (mean, var))
            both += zip(
                channel_gradients(there[0], there[1], m, v, ours, epsilon=1e-3),
                channel_gradients(here[0], here[1], mean, var, other, epsilon=1e-3),
                strict=True,
            )
            for one, wanted in both:
                size = float(np.abs(wanted.numpy()).max())
                np.testing.assert_allclose(
                    one.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-4 * size
                )


@pytest.mark.parametrize("shape", [(40, 3), (4, 8, 5, 7), (2, 3, 4, 5, 6)])
def test_batch_norms(device: Any, shape: Any) -> None:
    x, grad = normal(*shape, seed=1) * 2 + 3, normal(*shape, seed=2)
    weight, bias = normal(shape[1], seed=3), normal(shape[1], seed=4)
    agree(device, batch_norm_train, x, weight, bias, dtype="float32")
    agree(device, batch_norm_train, x, dtype="float32")
    mean = x.mean((0, *range(2, x.ndim)))
    var = x.var((0, *range(2, x.ndim)))
    agree(device, batch_norm_grad, grad, x, mean, var, weight, dtype="float32")
    agree(device, batch_norm_grad, grad, x, mean, var, dtype="float32")


@pytest.mark.parametrize("dtype", [*DTYPES, "float64"])
def test_infinities_and_nan_among_many(device: Any, dtype: str) -> None:
    arrays = [
        normal(*shape, seed=1).astype(dtype) for shape in [(3,), (5, 7), (70000,)]
    ]
    arrays += [np.zeros((0, 4), dtype)] + [np.ones((2,), "float32")] * 60

    def check() -> bool:
        tensors = [burn.from_numpy(a, device) for a in arrays]
        return bool(any_nonfinite(tensors))

    assert not check()
    for number in (0, 1, 2, 63):
        for value in (np.inf, -np.inf, np.nan):
            before = arrays[number].flat[-1]
            arrays[number].flat[-1] = value
            assert check()
            arrays[number].flat[-1] = before
    assert not check()


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_expression_of_many_tensors(device: Any, dtype: str) -> None:
    kind, single = np.dtype(dtype), np.dtype(np.float32)
    product = Element(
        "multiply", (single,) * 2, single, (Operand(0, kind), Operand(1, single))
    )
    element = Element("add", (single,) * 2, single, (product, Operand(2, single)))
    shapes = [(3,), (4, 4), (5000,), (2, 3, 4, 5), (1,), (8192,), (0, 3), (4097,)] * 7
    first = [normal(*shape, seed=n).astype(dtype) for n, shape in enumerate(shapes)]
    second = [normal(*shape, seed=n + 99) for n, shape in enumerate(shapes)]
    factor = np.array(3.0, np.float32)
    there = [[burn.from_numpy(a, device) for a in arrays] for arrays in (first, second)]
    there[0][3] = channels_last(there[0][3])  # of another memory order than its peer
    there[0][2] = burn.Tensor(
        burn.from_numpy(np.append(first[2][:1], first[2]), device).data[1:], device
    )  # unaligned
    outs = elements_of_many(
        there[0], burn.from_numpy(factor, device), there[1], element=element
    )
    for out, x, y in zip(outs, first, second, strict=True):
        assert out.shape == x.shape
        wanted = x.astype("float32") * factor + y
        np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_bfloat16_rounds_to_nearest_even(device: Any) -> None:
    bits = np.arange(0, 2**32, 65521, dtype=np.uint64).astype(np.uint32)
    bits = np.concatenate([bits, np.array([0x3F808000, 0x3F818000], np.uint32)])
    x = bits.view(np.float32)
    x = x[~(np.abs(x) < 2.0**-126)]  # kernels of CuPy flush denormals to zero
    with np.errstate(all="ignore"):
        expected = x.astype(bfloat16).astype(np.float32)
    plan = burn.compile(lambda x: ops.cast(x * 1.0, dtype=burn.bfloat16))
    for _ in range(3):
        actual = plan(burn.from_numpy(x, device)).numpy().astype(np.float32)
        same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
        assert same.all(), x[~same][:5]
