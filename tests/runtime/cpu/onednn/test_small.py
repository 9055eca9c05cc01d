"""Activations, softmax, normalization and pooling by oneDNN are NumPy's."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine
from tests.runtime.onednn import (
    assert_close,
    both,
    compare,
    laid_out,
    needs_onednn,
    normal,
    steps_of,
)
from tests.sampling import example_count

pytestmark = needs_onednn

ACTIVATIONS: list[tuple[Any, dict[str, Any]]] = [
    (ops.tanh, {}),
    (ops.sigmoid, {}),
    (ops.silu, {}),
    (ops.mish, {}),
    (ops.hard_swish, {}),
    (ops.gelu, {}),
    (ops.gelu, {"approximate": "tanh"}),
    (ops.leaky_relu, {"alpha": 0.3}),
    (ops.leaky_relu, {"alpha": -2.0}),
]
shapes = st.lists(st.integers(1, 17), min_size=1, max_size=4).map(tuple)


@pytest.mark.parametrize(("op", "static"), ACTIVATIONS)
@settings(max_examples=10)
@given(data=st.data(), shape=shapes, scale=st.sampled_from([1e-3, 1.0, 50.0]))
def test_activation(
    op: Any, static: dict[str, Any], data: st.DataObject, shape: Any, scale: float
) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    x = laid_out(normal(*shape) * np.float32(scale), order)
    actual, expected = both(op, x, **static)
    assert_close(actual, expected)
    assert steps_of(actual) == steps_of(expected)


@pytest.mark.parametrize(("op", "static"), ACTIVATIONS)
@pytest.mark.parametrize(
    "special", [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e38, -1e38, 1e-40]
)
def test_activation_of_special_numbers(
    op: Any, static: dict[str, Any], special: float
) -> None:
    x = normal(64)
    x[10] = special
    actual, expected = both(op, x, **static)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op", [ops.relu, lambda x: ops.clip(x, 0.0, 6.0)])
def test_nan_stays_nan(op: Any) -> None:
    x = burn.from_numpy(np.full(64, np.nan, np.float32))
    with engine.whatever_size():
        assert np.isnan(op(x).numpy()).all()


def test_leaky_relu_without_slope_is_numpys() -> None:
    x = burn.from_numpy(np.array([np.nan, -np.inf, -1.0, 2.0], np.float32))
    with engine.whatever_size():
        actual = ops.leaky_relu(x, alpha=0.0)
    with engine.numpy_only():
        expected = ops.leaky_relu(x, alpha=0.0)
    np.testing.assert_array_equal(actual.numpy(), expected.numpy())


@pytest.mark.parametrize("op", [ops.softmax, ops.log_softmax, ops.masked_softmax])
@settings(max_examples=example_count(20))
@given(shape=shapes, scale=st.sampled_from([1e-3, 1.0, 50.0]))
def test_softmax(op: Any, shape: Any, scale: float) -> None:
    compare(op, normal(*shape) * np.float32(scale))


@pytest.mark.parametrize("op", [ops.softmax, ops.log_softmax, ops.masked_softmax])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("many", [False, True])
def test_softmax_of_special_numbers(op: Any, special: float, many: bool) -> None:
    x = normal(4, 32)
    x[1, slice(None) if many else 3] = special
    actual, expected = both(op, x)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@settings(max_examples=example_count(40))
@given(
    shape=shapes,
    weight=st.booleans(),
    bias=st.booleans(),
    epsilon=st.sampled_from([1e-5, 1e-12, 0.1]),
)
def test_layer_norm(shape: Any, weight: bool, bias: bool, epsilon: float) -> None:
    width = shape[-1] + 1
    scale, shift = normal(width, seed=1), normal(width, seed=2)
    actual, expected = both(
        ops.layer_norm,
        *(normal(*shape[:-1], width), scale if weight else None),
        shift if bias else None,
        epsilon=epsilon,
    )
    # With two elements a row the sign alone is left, of a difference that is rounded.
    assert_close(actual, expected, 1e-3 if width == 2 else 2e-5)


@settings(max_examples=example_count(40))
@given(
    space=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    channels=st.sampled_from([1, 3, 16, 17]),
    weight=st.booleans(),
    bias=st.booleans(),
)
def test_batch_norm(space: list[int], channels: int, weight: bool, bias: bool) -> None:
    x = normal(2, channels, *space)
    x = laid_out(x, (0, *range(2, x.ndim), 1))
    mean, scale, shift = (normal(channels, seed=i) for i in (1, 2, 3))
    var = np.abs(normal(channels, seed=4)) + np.float32(0.1)
    compare(
        ops.batch_norm,
        *(x, mean, var, scale if weight else None, shift if bias else None),
        epsilon=1e-3,
    )


def test_batch_norm_in_other_orders_is_numpys() -> None:
    x, (mean, var) = normal(2, 8, 9, 9), (np.abs(normal(8, seed=i)) + 1 for i in (1, 2))
    given = [burn.from_numpy(array) for array in (x, mean, var)]
    with engine.whatever_size():
        actual = ops.batch_norm(*given)
    with engine.numpy_only():
        np.testing.assert_array_equal(actual.numpy(), ops.batch_norm(*given).numpy())


@st.composite
def pools(draw: st.DrawFn) -> tuple[Any, dict[str, Any]]:
    rank = draw(st.integers(1, 3))
    kernel = tuple(draw(st.integers(2, 3)) for _ in range(rank))
    size = tuple(draw(st.integers(7, 11)) for _ in range(rank))
    x = normal(draw(st.integers(1, 2)), draw(st.sampled_from([1, 3, 16])), *size)
    static = {
        "kernel_size": kernel,
        "stride": tuple(draw(st.integers(1, 3)) for _ in range(rank)),
        "padding": tuple(
            (draw(st.integers(0, 1)), draw(st.integers(0, 1))) for _ in kernel
        ),
        "dilation": tuple(draw(st.integers(1, 2)) for _ in range(rank)),
    }
    return laid_out(x, draw(st.permutations(range(rank + 2)))), static


@settings(max_examples=example_count(60))
@given(case=pools(), ceil_mode=st.booleans())
def test_max_pool(case: Any, ceil_mode: bool) -> None:
    x, static = case
    actual, expected = pooled(ops.max_pool, x, {**static, "ceil_mode": ceil_mode})
    np.testing.assert_array_equal(actual, expected)


@settings(max_examples=example_count(60))
@given(case=pools(), ceil_mode=st.booleans(), include=st.booleans())
def test_avg_pool(case: Any, ceil_mode: bool, include: bool) -> None:
    x, static = case
    static = {**static, "ceil_mode": ceil_mode, "count_include_pad": include}
    assert_close(*pooled(ops.avg_pool, x, static))


def pooled(op: Any, x: Any, static: dict[str, Any]) -> tuple[Any, Any]:
    """The result where oneDNN may be used, and by NumPy."""
    given = burn.from_numpy(x)
    with engine.whatever_size():
        actual = op(given, **static)
    with engine.numpy_only():
        expected = op(given, **static)
    return actual.numpy(), expected.numpy()


@pytest.mark.parametrize("op", [ops.max_pool, ops.avg_pool])
def test_pooling_is_oft_onednns(op: Any) -> None:
    compare(op, normal(2, 8, 9, 9), kernel_size=3, stride=2, padding=1)


@pytest.mark.parametrize(("size", "padding"), [(8, 0), (9, 0), (9, 1)])
def test_means_of_windows_beyond_images_are_onednns(size: int, padding: int) -> None:
    static = {"stride": 2, "padding": padding, "ceil_mode": True}
    x = normal(2, 8, size, size)
    compare(ops.avg_pool, x, kernel_size=3, count_include_pad=True, **static)


def test_means_of_windows_beyond_the_padding_are_numpys() -> None:
    static = {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}
    session = engine.current()
    assert session is not None
    session.primitives.clear()
    static["count_include_pad"] = True
    assert_close(*pooled(ops.avg_pool, normal(2, 8, 8, 8), static))
    assert not session.primitives.implementations()


def test_the_largest_of_nan_is_nan() -> None:
    x = normal(1, 4, 8, 8)
    x[0, 1, 3, 3] = np.nan
    actual, expected = pooled(ops.max_pool, x, {"kernel_size": 2})
    assert np.isnan(actual).sum() == 4
    np.testing.assert_array_equal(actual, expected)


@settings(max_examples=example_count(40))
@given(case=pools(), keepdims=st.booleans(), axes=st.integers(0, 2))
def test_mean(case: Any, keepdims: bool, axes: int) -> None:
    x, _ = case
    axis = [tuple(range(2, x.ndim)), tuple(range(-1, 1 - x.ndim, -1)), (0, x.ndim - 1)]
    for order in (tuple(range(x.ndim)), (0, *range(2, x.ndim), 1)):
        given = laid_out(x, order)
        actual, expected = pooled(
            ops.mean, given, {"axis": axis[axes], "keepdims": keepdims}
        )
        assert_close(actual, expected)


@pytest.mark.parametrize("keepdims", [False, True])
def test_the_mean_of_an_image_is_onednns(keepdims: bool) -> None:
    x = laid_out(normal(2, 8, 9, 7), (0, 2, 3, 1))
    x[0, 1, 2, 3], x[1, 1, 2, 3] = np.nan, np.inf
    actual, expected = both(ops.mean, x, axis=(2, 3), keepdims=keepdims)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_the_mean_of_many_is_numpys() -> None:
    x = laid_out(normal(1, 1, 300, 200) + 1e4, (0, 2, 3, 1))
    session = engine.current()
    assert session is not None
    session.primitives.clear()
    pooled(ops.mean, x, {"axis": (2, 3)})
    assert session.primitives.implementations() == []
