"""First values of parameters have the distributions of PyTorch's initializers."""

import math
from typing import Any

import numpy as np
import pytest

from burn.nn import init

SHAPE = (60, 40, 3, 5)
FAN_IN, FAN_OUT = 40 * 15, 60 * 15


def drawn(values: Any) -> Any:
    return values.make().numpy()


@pytest.mark.parametrize(
    ("values", "std"),
    [
        (lambda: init.kaiming_normal(SHAPE), math.sqrt(2 / FAN_IN)),
        (lambda: init.xavier_normal(SHAPE, 3.0), 3 * math.sqrt(2 / (FAN_IN + FAN_OUT))),
        (lambda: init.xavier_uniform(SHAPE), math.sqrt(2 / (FAN_IN + FAN_OUT))),
    ],
)
def test_deviations_follow_the_fans(values: Any, std: float) -> None:
    array = drawn(values())
    assert array.shape == SHAPE
    assert array.dtype == np.float32
    assert array.std() == pytest.approx(std, rel=0.02)
    assert abs(array.mean()) < 0.02 * std


def test_uniform_values_are_within_the_bound() -> None:
    bound = math.sqrt(6 / (FAN_IN + FAN_OUT))
    array = drawn(init.xavier_uniform(SHAPE))
    assert 0.99 * bound < np.abs(array).max() <= bound


def test_a_normal_distribution_is_cut() -> None:
    array = drawn(init.trunc_normal((400, 50), 0.5, 1.0))
    assert 0.98 < np.abs(array).max() <= 1.0
    assert array.std() == pytest.approx(0.5 * 0.8796, rel=0.02)
    with pytest.raises(ValueError, match="expected bound >= std, got 0.5 and 1"):
        init.trunc_normal((3,), 1.0, 0.5)


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (4, 2, 3)])
def test_orthogonal_matrices_have_equal_singular_values(shape: tuple[int, ...]) -> None:
    array = drawn(init.orthogonal(shape, 2.0))
    assert array.shape == shape
    values = np.linalg.svd(array.reshape(shape[0], -1), compute_uv=False)
    np.testing.assert_allclose(values, 2.0, rtol=1e-5)


def test_vectors_have_no_fans() -> None:
    with pytest.raises(ValueError, match=r"at least two axes, got \[3\]"):
        init.xavier_uniform((3,))
