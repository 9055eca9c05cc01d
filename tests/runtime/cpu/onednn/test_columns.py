"""Sums of columns by oneDNN are NumPy's."""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine
from burn.backend.cpu.onednn.kernels import columns
from tests.runtime.onednn import assert_close, laid_out, needs_onednn, normal, planned
from tests.sampling import example_count

pytestmark = needs_onednn


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, ...]:
    """An array in any order of axes, and axes to sum over."""
    rank = draw(st.integers(1, 4))
    shape = [draw(st.sampled_from([1, 2, 3, 5, 8])) for _ in range(rank)]
    x = laid_out(normal(*shape), draw(st.permutations(range(rank))))
    axes = draw(st.lists(st.integers(-rank, rank - 1), max_size=rank))
    return x, tuple({axis % rank: axis for axis in axes}.values())


@settings(max_examples=example_count(200))
@given(case=cases(), keepdims=st.booleans(), other=st.booleans())
def test_sums(case: Any, keepdims: bool, other: bool) -> None:
    x, axes = case
    shape = [1 if {a, a - x.ndim} & {*axes} else n for a, n in enumerate(x.shape)]

    def run(x: Any) -> Any:
        if other:
            return ops.sum_to(x, shape=tuple(shape))
        return ops.sum(x, axes, keepdims=keepdims)

    with engine.numpy_only():
        expected = run(burn.from_numpy(x)).numpy()
    with (
        patch.multiple(columns, _ELEMENTS=1, _ROWS=1, _COLUMNS=1, _ALIASED=4),
        engine.whatever_size(),
    ):
        assert_close(run(burn.from_numpy(x)).numpy(), expected)
        assert_close(planned(run, x), expected)


@pytest.mark.parametrize("shape", [(8, 64, 128), (700, 96), (130, 512), (3, 50, 1024)])
def test_large_ones_are_not_numpys(shape: tuple[int, ...]) -> None:
    x, axes = burn.from_numpy(normal(*shape)), tuple(range(len(shape) - 1))
    with engine.numpy_only():
        expected = ops.sum(x, axes).numpy()
    with patch.object(ops.sum, "kernel", None):
        actual = ops.sum(x, axes).numpy()
    assert_close(actual, expected)


@pytest.mark.parametrize("rows", [600, 4099, 100_352])
def test_sums_of_many_rows_are_exact(rows: int) -> None:
    x = np.random.default_rng(0).random((rows, 64), np.float32)
    expected = x.sum(0, dtype=np.float64)

    def total(x: burn.Tensor) -> burn.Tensor:
        return ops.sum(x, 0)

    planned(total, x)
    for actual in (planned(total, x), total(burn.from_numpy(x)).numpy()):
        np.testing.assert_allclose(actual, expected, rtol=1.5e-6)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(special: float) -> None:
    x = normal(600, 128)
    x[17, 5], x[19, 7], x[20, 7] = special, np.inf, -np.inf
    actual = ops.sum(burn.from_numpy(x), 0).numpy()
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(actual, x.sum(0), rtol=1e-4, atol=1e-4)


def test_plans_own_their_ones() -> None:
    plan = burn.compile(lambda x: ops.sum(ops.relu(x), 0))
    x = burn.from_numpy(normal(600, 128))
    plan(x)  # NumPy may compute the call that is recorded
    expected = plan(x).numpy()
    session = engine.current()
    assert session is not None
    for _ in range(3):
        session.primitives.clear()
        noise = [np.full(600, 7.0, np.float32) for _ in range(50)]
        np.testing.assert_array_equal(plan(x).numpy(), expected)
        del noise
