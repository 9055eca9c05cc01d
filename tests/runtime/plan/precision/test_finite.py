"""Which numbers plans are left for."""

from typing import Any

import numpy as np
import pytest

import burn
from burn.backend.cpu.bind.finite import is_finite
from burn.backend.cpu.onednn.kernels.large_sums import total
from tests.runtime.onednn import needs_onednn, normal


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (0,), (3, 5), (30, 40, 50)])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_is_finite(dtype: Any, shape: tuple[int, ...], bad: float) -> None:
    x = np.asarray(normal(*shape)).astype(dtype)
    given = x.transpose(range(x.ndim)[::-1])
    assert is_finite(given)
    if x.size:
        x[tuple(extent // 2 for extent in shape)] = bad
        assert not is_finite(given)


def test_numbers_whose_sum_overflows() -> None:
    # Few numbers are added up, and such plans are left for no need.
    assert is_finite(np.full(30_000, 3e38, np.float32))
    assert is_finite(np.full(1 << 18, 3e38, np.float32))


@needs_onednn
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, -1, 123_457])
def test_one_look_at_many_numbers(bad: float, place: int) -> None:
    x = normal(8, 320, 330)
    for given in (x, x.transpose(2, 0, 1)):
        actual = total(given)
        assert actual is not None
        np.testing.assert_allclose(actual, x.sum(dtype=np.float64), atol=0.1)
    x.flat[place] = bad
    actual = total(x)
    assert actual is not None
    assert not np.isfinite(actual)
    assert not is_finite(x)


@pytest.mark.parametrize("shape", [(1023, 1025), (255, 512)])
def test_numbers_that_one_look_is_not_for(shape: tuple[int, ...]) -> None:
    x = normal(*shape)
    assert total(x) is None
    assert total(np.repeat(x, 3, 1)[:, ::2]) is None
    assert is_finite(x)
    x[-1, -1] = np.nan
    assert not is_finite(x)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_large_inputs_that_are_not_finite(bad: float) -> None:
    def run(x: Any) -> Any:
        return burn.ops.relu(x - 1.0) * 2.0

    plan, x = burn.compile(run), normal(30, 40, 50)
    for _ in range(3):
        plan(burn.from_numpy(x))
    x[3, 4, 5] = bad
    actual = plan(burn.from_numpy(x)).numpy()
    np.testing.assert_array_equal(actual, run(burn.from_numpy(x)).numpy())
