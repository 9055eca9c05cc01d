"""Gradients that a short formula would divide by zero for."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, ops
from tests.runtime.gradcheck import check_gradient


def gradients(fn: Any, *arrays: Any) -> Any:
    """The gradients of the sum of ``fn``."""
    tape = Autodiff(Cpu())
    leaves = [
        burn.from_numpy(np.asarray(a, np.float64), tape).require_grad() for a in arrays
    ]
    result = fn(*leaves).sum().backward()
    return [result[leaf].numpy().tolist() for leaf in leaves]


def test_powers_of_zero() -> None:
    base, exponent = gradients(lambda x, y: x**y, [0, 0, 0, 2], [0, 2, 1, 3])
    assert base == [0, 0, 1, 12]
    np.testing.assert_allclose(exponent, [0, 0, 0, 8 * np.log(2)])
    assert gradients(lambda x: x**0, [0, 3]) == [[0, 0]]


def test_norms_of_zeros() -> None:
    actual = np.array(gradients(lambda x: ops.reduce_l2(x, 1), [[0, 0], [3, 4]]))
    np.testing.assert_allclose(actual, np.array([[[0, 0], [0.6, 0.8]]]))
    zeros = np.zeros((1, 1, 3))
    pooled = gradients(lambda x: ops.lp_pool(x, kernel_size=2, p=3.0), zeros)
    assert pooled == [[[[0, 0, 0]]]]


@pytest.mark.parametrize("index", [[0, 2, 1], [1, 1, 1], [1, 1, 2]])
@pytest.mark.parametrize("factors", [[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [2, -1, 3.0]])
def test_zero_factors(index: list[int], factors: list[float]) -> None:
    x = np.array([1.5, -2.0, 0.7])
    at = np.array(index)
    check_gradient(
        lambda a, b: ops.scatter_elements(a, at, b, reduction="mul"),
        x,
        np.array(factors),
        order=1,
    )


def test_ranges_follow_their_start_and_step() -> None:
    check_gradient(lambda a, b: ops.arange(a, 10.0, b), np.array(1.5), np.array(2.0))
