"""Batch norms of a plan by constant scales and shifts are those of eager calls."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine
from burn.backend.cpu.onednn.kernels.norms import channel_scales, normalization
from tests.runtime.onednn import assert_close, needs_onednn, normal
from tests.sampling import example_count

pytestmark = needs_onednn


@pytest.fixture
def shapes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The shapes of norms by scales and shifts, which every processor uses here."""
    result: list[Any] = []

    def prepared(primitives: Any, shape: Any, has_relu: bool) -> Any:
        result.append(shape)
        return channel_scales.prepared_scales(primitives, shape, has_relu=has_relu)

    monkeypatch.setattr(normalization, "prepared_scales", prepared)
    monkeypatch.setattr(normalization, "reads_few_sets", lambda *_: True)
    session = engine.current()
    assert session is not None
    session.primitives.clear()
    return result


def statistics(channels: int, has_weight: bool, has_bias: bool) -> list[Any]:
    """Mean, variance, weight and bias of channels."""
    parts = [normal(channels, seed=seed) for seed in range(4)]
    parts[1] = np.abs(parts[1]) + 0.1
    tensors: list[Any] = list(map(burn.from_numpy, parts))
    if not has_weight:
        tensors[2] = None
    if not has_bias:
        tensors[3] = None
    return tensors


def normed(parts: list[Any], has_relu: bool) -> Callable[[Any], Any]:
    """A norm with channels last that is not folded into a layer."""
    channels = parts[0].shape[0]

    def function(x: Any) -> Any:
        shape = (channels, x.shape[1], *(1 for _ in x.shape[2:]))
        image = ops.conv(x, burn.from_numpy(normal(*shape, seed=7)))
        pooled = ops.max_pool(image, kernel_size=2)
        y = ops.batch_norm(pooled, *parts, epsilon=1e-3)
        return ops.relu(y) if has_relu else y

    return function


@settings(max_examples=example_count(30))
@given(
    batch=st.integers(1, 3),
    channels=st.sampled_from([1, 3, 8, 17, 128]),
    size=st.lists(st.integers(2, 7), min_size=1, max_size=3),
    has_weight=st.booleans(),
    has_bias=st.booleans(),
    has_relu=st.booleans(),
)
def test_plans_are_as_eager_calls(
    batch: int,
    channels: int,
    size: list[int],
    has_weight: bool,
    has_bias: bool,
    has_relu: bool,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(normalization, "reads_few_sets", lambda *_: True)
        function = normed(statistics(channels, has_weight, has_bias), has_relu)
        with engine.whatever_size():
            plan = burn.compile(function)
            for seed in range(4):
                x = burn.from_numpy(normal(batch, channels, *size, seed=seed))
                actual, expected = plan(x).numpy(), function(x).numpy()
                assert_close(actual, expected, 1e-5)


def test_constant_statistics_become_scales(shapes: list[Any]) -> None:
    plan = burn.compile(normed(statistics(8, True, True), True))
    with engine.whatever_size():
        for _ in range(2):  # the first call records, the second one binds
            plan(burn.from_numpy(normal(1, 8, 6, 6)))
    assert shapes == [(1, 8, 5, 5)]


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(shapes: list[Any], number: float) -> None:
    function = normed(statistics(8, True, True), True)
    plan, x = burn.compile(function), normal(1, 8, 6, 6)
    with engine.whatever_size():
        for _ in range(3):
            plan(burn.from_numpy(x))
        x[0, 3, 2, 2] = number
        for _ in range(2):
            actual = plan(burn.from_numpy(x)).numpy()
            expected = function(burn.from_numpy(x)).numpy()
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
    assert shapes


def test_gradients_decide_as_eager_calls_do(shapes: list[Any]) -> None:
    """Rounding otherwise would let other elements pass a ReLU."""
    backend = burn.Autodiff(burn.Cpu())
    parts = statistics(8, True, True)

    def step(x: Any) -> Any:
        leaf = x.to(backend).require_grad()
        y = normed([part.to(backend) for part in parts], True)(leaf)
        return y.detach(), ops.mean(y * y).backward()[leaf].detach()

    plan, x = burn.compile(step), burn.from_numpy(normal(2, 8, 6, 6))
    with engine.whatever_size():
        for _ in range(3):
            actual = plan(x)
        expected = step(x)
    np.testing.assert_array_equal(actual[0].numpy(), expected[0].numpy())
    assert_close(actual[1].numpy(), expected[1].numpy())
    assert not shapes


@pytest.mark.parametrize(
    ("channels", "name", "is_slow"),
    [
        (128, "bnorm_jit:avx2", True),
        (1024, "bnorm_jit:avx2", True),
        (96, "bnorm_jit:avx2", False),
        (1024, "bnorm_jit:avx512_core", False),
    ],
)
def test_slow_norms(channels: int, name: str, is_slow: bool) -> None:
    x = normal(1, channels, 2, 2)
    assert channel_scales.reads_few_sets(x, name) is is_slow
