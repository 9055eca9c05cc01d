"""Norms in training and the gradients of norms by oneDNN are NumPy's."""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import Autodiff, Cpu, ops
from burn.backend.cpu.onednn.binding import engine
from burn.backend.cpu.onednn.kernels.norms import long_sums
from burn.ops.layer_norm import layer_norm_grad
from burn.ops.norm import batch_norm_grad
from burn.ops.softmax import softmax_grad
from tests.runtime.gradcheck import check_gradient
from tests.runtime.onednn import (
    assert_close,
    both,
    laid_out,
    needs_onednn,
    normal,
    steps_of,
)
from tests.sampling import example_count

pytestmark = needs_onednn

spaces = st.lists(st.integers(1, 9), max_size=3)
channels = st.sampled_from([1, 3, 16, 17])


def image(channels: int, space: list[int], seed: int = 0, first: bool = False) -> Any:
    x = normal(5, channels, *space, seed=seed) * 2 + 1
    return x if first else laid_out(x, (0, *range(2, x.ndim), 1))


@settings(max_examples=example_count(40))
@given(
    space=spaces,
    channels=channels,
    weight=st.booleans(),
    bias=st.booleans(),
    part=st.integers(0, 2),
)
def test_batch_norm_train(
    space: list[int], channels: int, weight: bool, bias: bool, part: int
) -> None:
    scale, shift = normal(channels, seed=1), normal(channels, seed=2)
    actual, expected = both(
        lambda *a: ops.batch_norm_train(*a, epsilon=1e-2)[part],
        *(image(channels, space), scale if weight else None, shift if bias else None),
    )
    assert_close(actual, expected, 2e-5)
    assert steps_of(actual) == steps_of(expected)


@settings(max_examples=example_count(40))
@given(space=spaces, channels=channels, part=st.integers(0, 2), first=st.booleans())
def test_batch_norm_grad(
    space: list[int], channels: int, part: int, first: bool
) -> None:
    x, grad = image(channels, space), image(channels, space, 1, first)
    axes = (0, *range(2, x.ndim))
    actual, expected = both(
        lambda *a: batch_norm_grad(*a, epsilon=1e-2)[part],
        *(grad, x, x.mean(axes), x.var(axes), normal(channels, seed=2)),
    )
    assert_close(actual, expected, 5e-5)


@pytest.mark.parametrize("shape", [(5, 3, 4, 6), (5, 16, 8), (3, 17, 2, 4, 5)])
@pytest.mark.parametrize("affine", [False, True])
def test_batch_norms_in_parts(shape: tuple[int, ...], affine: bool) -> None:
    x, grad = (
        laid_out(normal(*shape, seed=seed) + 1, (0, *range(2, len(shape)), 1))
        for seed in (0, 1)
    )
    line = [normal(shape[1], seed=seed) for seed in (2, 3)]

    def results(x: Any, grad: Any, *affine: Any) -> Any:
        y, mean, var = ops.batch_norm_train(x, *affine)
        back = batch_norm_grad(grad, x, mean, var, *affine[:1])
        return ops.concat([part.reshape(-1) for part in (y, mean, var, *back)], 0)

    with patch.multiple(long_sums, LEAST=16, LEAST_OF_GRADIENTS=16, _FEWEST=2):
        assert long_sums.parts_of(shape, long_sums.LEAST) > 1
        actual, expected = both(results, x, grad, *(line if affine else ()))
    assert_close(actual, expected, 2e-5)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_statistics_of_many_pixels_are_exact(is_compiled: bool) -> None:
    rng = np.random.default_rng(0)
    x, grad = (
        laid_out(rng.random((6, 16, 96, 96), np.float32), (0, 2, 3, 1))
        for _ in range(2)
    )
    grad += x  # or the gradient of the weight would be a difference of large sums
    axes = (0, 2, 3)

    def results(x: Any, grad: Any, weight: Any) -> Any:
        _, mean, var = ops.batch_norm_train(x)
        back = batch_norm_grad(grad, x, mean, var, weight)
        return mean, var, *back[1:], back[0]

    weight = rng.random(16, np.float32)
    function = burn.compile(results) if is_compiled else results
    for _ in range(2):
        actual = function(*map(burn.from_numpy, (x, grad, weight)))
    wide, above = x.astype(np.float64), grad.astype(np.float64)
    mean, var = wide.mean(axes), wide.var(axes)
    expected = (mean, var, *batch_norm_grad.kernel(above, wide, mean, var, weight)[1:])
    for one, other in zip(actual[:4], expected, strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=3e-6)
    first = batch_norm_grad.kernel(above, wide, mean, var, weight)[0]
    assert np.abs(actual[4].numpy() - first).max() < 1e-6 * np.abs(first).max()


def test_a_prime_number_of_pixels_is_one_part() -> None:
    assert long_sums.parts_of((1, 3, 100003), long_sums.LEAST) == 1
    assert long_sums.parts_of((64, 3, 112, 112), long_sums.LEAST) > 500


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1)])
def test_norms_of_channels_in_any_order_and_without_weight(order: Any) -> None:
    x = laid_out(normal(3, 5, 4, 7), order)

    def grads() -> Any:
        leaf = burn.from_numpy(x).to(Autodiff(Cpu())).require_grad()
        y, mean, var = ops.batch_norm_train(leaf)
        loss = (y * y * y).sum() + mean.sum() + (var * var).sum()
        return loss.backward()[leaf].numpy()

    with engine.whatever_size():
        actual = grads()
    with engine.numpy_only():
        assert_close(actual, grads(), 1e-4)


@settings(max_examples=example_count(40))
@given(
    outer=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    width=st.integers(3, 40),
    weight=st.booleans(),
    data=st.data(),
)
def test_layer_norm_grad(
    outer: list[int], width: int, weight: bool, data: st.DataObject
) -> None:
    part = data.draw(st.integers(0, int(weight)))
    shape = (*outer, width)
    actual, expected = both(
        lambda *a: layer_norm_grad(*a, epsilon=1e-2)[part],
        *(normal(*shape), normal(*shape, seed=1) * 3 + 1),
        normal(width, seed=2) if weight else None,
    )
    assert_close(actual, expected, 5e-5)


@pytest.mark.parametrize("axis", [(1, 2), (0,), 1])
def test_layer_norm_grad_over_other_axes_is_numpys(axis: Any) -> None:
    given = [burn.from_numpy(normal(3, 8, 9, seed=seed)) for seed in (0, 1)]
    with engine.whatever_size():
        (actual,) = layer_norm_grad(*given, axis=axis)
    with engine.numpy_only():
        (expected,) = layer_norm_grad(*given, axis=axis)
    np.testing.assert_array_equal(actual.numpy(), expected.numpy())


@settings(max_examples=example_count(30))
@given(shape=st.lists(st.integers(1, 17), min_size=1, max_size=4))
def test_softmax_grad(shape: list[int]) -> None:
    x = np.exp(normal(*shape, seed=1))
    out = x / x.sum(-1, keepdims=True)
    actual, expected = both(softmax_grad, normal(*shape), out)
    scale = float(np.abs(normal(*shape)).max())
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5 * scale)


@pytest.mark.parametrize("axis", [-1, 1, (0, 2)])
def test_softmax_has_second_derivatives(axis: Any) -> None:
    x, weight = normal(3, 4, 5), burn.from_numpy(normal(3, 4, 5, seed=1))

    def slope(x: Any) -> Any:
        (result,) = ops.gradient(
            lambda x: (ops.softmax(x, axis=axis) * weight) ** 2.0, [x]
        )
        return result

    check_gradient(slope, x)


def test_a_norm_of_nan_is_nan_as_numpys() -> None:
    x = image(8, [4, 4])
    x[1, 3, 2, 2] = np.nan
    actual, expected = both(lambda x: ops.batch_norm_train(x)[0], x)
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
