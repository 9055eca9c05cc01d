"""Norms of groups of channels by oneDNN are NumPy's, and are one pass with silu."""

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import burn
from burn import Autodiff, Cpu, ops
from burn.backend.cpu.onednn.binding import engine
from burn.ops.fused import group_norm_then
from burn.ops.norm import group_norm
from tests.runtime.onednn import assert_close, both, laid_out, needs_onednn, normal
from tests.runtime.plan.fusion.test_fusion import left
from tests.sampling import example_count

pytestmark = needs_onednn

EPSILON = 1e-2


def image(shape: tuple[int, ...], last: bool, seed: int = 0) -> Any:
    x = normal(*shape, seed=seed) * 2 + 5
    return laid_out(x, (0, *range(2, x.ndim), 1)) if last else x


def normed(x: Any, weight: Any, bias: Any, *, groups: int) -> Any:
    return ops.group_norm(x, weight, bias, groups=groups, epsilon=EPSILON)


def exact(x: Any, weight: Any, bias: Any, *, groups: int) -> Any:
    """The norm in float64."""
    wide = x.astype(np.float64).reshape(len(x), groups, -1)
    wide -= wide.mean(-1, keepdims=True)
    wide /= np.sqrt(wide.var(-1, keepdims=True) + EPSILON)
    beside = (-1, *(1 for _ in x.shape[2:]))
    y = wide.reshape(x.shape) * (1 if weight is None else weight.reshape(beside))
    return y + (0 if bias is None else bias.reshape(beside))


def compare(shape: tuple[int, ...], groups: int, last: bool, parts: int = 3) -> None:
    """oneDNN's result is as near to the exact one as NumPy's."""
    x, weight, bias = (
        image(shape, last),
        normal(shape[1], seed=1) if parts & 1 else None,
        normal(shape[1], seed=2) if parts & 2 else None,
    )
    actual, expected = both(normed, x, weight, bias, groups=groups)
    long = [axis for axis, extent in enumerate(shape) if extent > 1]
    assert [actual.strides[a] for a in long] == [x.strides[a] for a in long]
    right = exact(x, weight, bias, groups=groups)
    for y in (actual, expected):
        np.testing.assert_allclose(y, right, rtol=1e-5, atol=2e-5)


@settings(max_examples=example_count(60))
@given(
    space=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    batch=st.integers(1, 4),
    sizes=st.tuples(st.sampled_from([1, 2, 3, 8]), st.sampled_from([1, 2, 5, 8])),
    last=st.booleans(),
    parts=st.integers(0, 3),
)
def test_small_images(
    space: list[int], batch: int, sizes: tuple[int, int], last: bool, parts: int
) -> None:
    assume(prod(space) > 1)
    compare((batch, prod(sizes), *space), sizes[0], last, parts)


@pytest.mark.parametrize("groups", [1, 3, 6])
def test_images_of_one_element_are_numpys(groups: int) -> None:
    arrays = [normal(4, 6, 1, 1), normal(6, seed=1), normal(6, seed=2)]
    with engine.whatever_size():
        actual = normed(*map(burn.from_numpy, arrays), groups=groups).numpy()
    assert_close(actual, exact(*arrays, groups=groups).astype(np.float32))


@pytest.mark.parametrize("parts", range(4))
@pytest.mark.parametrize(
    ("shape", "groups"),
    [
        ((2, 48, 19, 21), 8),  # so large that statistics are those of channels
        ((3, 20, 30, 31), 5),
        ((3, 32, 23, 29), 32),
        ((1, 40, 900), 1),
        ((1, 24, 9, 10, 11), 12),
    ],
)
def test_large_images(shape: tuple[int, ...], groups: int, parts: int) -> None:
    compare(shape, groups, True, parts)
    compare(shape, groups, False, parts)


@pytest.mark.parametrize("groups", [4, 16])
@pytest.mark.parametrize("extent", [5, 40])
def test_far_from_zero_it_is_as_exact_as_numpy(extent: int, groups: int) -> None:
    x = image((2, 16, extent, extent + 1), True) + 300
    right = exact(x, None, None, groups=groups)
    actual, expected = both(normed, x, None, None, groups=groups)
    error, numpys = (np.abs(y - right).max() for y in (actual, expected))
    # For groups of one channel oneDNN adds the pixels one after another.
    assert error < max(2 * numpys, 1e-6 * 300 * (groups == 16))
    assert numpys < 1e-3


@pytest.mark.parametrize("groups", [2, 8])
def test_statistics_of_many_pixels_are_exact(groups: int) -> None:
    x = laid_out(normal(1, 8, 256, 160) ** 2, (0, 2, 3, 1))
    actual = normed(burn.from_numpy(x), None, None, groups=groups).numpy()
    assert_close(actual, exact(x, None, None, groups=groups).astype(np.float32), 1e-6)


@pytest.mark.parametrize("shape", [(2, 6, 5, 7), (2, 16, 40, 31)])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_not_finite_spoils_its_group(shape: Any, number: float) -> None:
    x = image(shape, True)
    x[1, -1, 2, 2] = number
    actual, expected = both(normed, x, None, None, groups=2)
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    assert np.isnan(actual[1, -1]).all() and np.isfinite(actual[0]).all()


def test_instance_norm_and_its_gradients() -> None:
    arrays = [image((3, 5, 6, 7), True), normal(5, seed=1), normal(5, seed=2)]

    def grads() -> Any:
        leaves = [burn.from_numpy(a).to(Autodiff(Cpu())).require_grad() for a in arrays]
        y = ops.instance_norm(*leaves, epsilon=EPSILON)
        result = (y * y * y).sum().backward()
        return [result[leaf].numpy() for leaf in leaves]

    with engine.whatever_size():
        result = grads()
    with engine.numpy_only():
        expected = grads()
    for one, other in zip(result, expected, strict=True):
        assert_close(one, other, 1e-4)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    ("shape", "groups"),
    [
        ((3, 6, 5, 7), 3),
        ((2, 6, 40), 1),
        ((2, 6, 41), 6),
        ((2, 48, 19, 21), 8),
        ((2, 16, 40, 31), 16),
    ],
)
def test_plans_leave_nothing_to_numpy(
    shape: tuple[int, ...], groups: int, last: bool, monkeypatch: Any
) -> None:
    weight, bias = (burn.from_numpy(normal(shape[1], seed=s)) for s in (1, 2))

    def model(x: Any) -> Any:
        y = normed(x * 2.0, weight, bias, groups=groups)
        return ops.silu(normed(ops.silu(y), None, bias, groups=groups))

    images = [image(shape, last, seed) for seed in (3, 4, 5, 6)]
    with engine.numpy_only():
        expected = [model(burn.from_numpy(x)).numpy() for x in images]

    def refused(*args: Any, **static: Any) -> Any:
        raise AssertionError("NumPy computes")

    for primitive in (group_norm, group_norm_then):
        monkeypatch.setattr(primitive, "kernel", refused)
    compiled = burn.compile(model)
    with engine.whatever_size():
        for x, y in zip(images, expected, strict=True):
            actual = compiled(burn.from_numpy(x)).numpy()
            np.testing.assert_allclose(actual, y, rtol=2e-5, atol=5e-5)
    fused = "group_norm silu" if groups == shape[1] else "group_norm_then"
    assert left(compiled) == ["mul", *fused.split(), "group_norm", "silu"]


@pytest.mark.parametrize("name", ["gelu", "relu", "tanh", "leaky_relu"])
def test_other_activations_after(name: str) -> None:
    static: Any = {"alpha": 0.2} if name == "leaky_relu" else {}
    numbers = tuple(static.values())
    for last in (False, True):
        x = image((2, 12, 5, 9), last)
        actual, expected = both(
            *(group_norm_then, x, normal(12, seed=1), normal(12, seed=2)),
            after=((name, *numbers),),
            groups=4,
        )
        assert_close(actual, expected)


@pytest.mark.parametrize("order", [(1, 0, 2, 3), (0, 3, 1, 2)])
def test_images_in_any_order(order: Any) -> None:
    x = laid_out(normal(3, 8, 5, 6), order)
    weight, bias = (burn.from_numpy(normal(8, seed=s)) for s in (1, 2))

    def model(x: Any) -> Any:
        return ops.silu(normed(x, weight, bias, groups=2))

    compiled = burn.compile(model)
    for number in (1.0, 2.0, 3.0):
        given = burn.from_numpy(x * number)
        actual = compiled(given).numpy()
        with engine.numpy_only():
            assert_close(actual, model(given).numpy(), 2e-5)


def test_channels_that_are_no_groups_are_refused() -> None:
    x = burn.from_numpy(normal(2, 6, 5, 7))
    with engine.whatever_size(), pytest.raises(ValueError, match="group_norm"):
        ops.group_norm(x, groups=4)
