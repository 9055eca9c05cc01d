"""Determinants by value and by gradient."""

import numpy as np
import pytest

import burn
from burn import ops
from tests.runtime.gradcheck import check_gradient

RNG = np.random.default_rng(2)


@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 4, 4), (3, 1, 1), (2, 0, 0)])
def test_det(shape: tuple[int, ...]) -> None:
    x = RNG.standard_normal(shape)
    got = ops.det(burn.tensor(x))
    assert got.shape == shape[:-2]
    np.testing.assert_allclose(got.numpy(), np.linalg.det(x), rtol=1e-12)
    if shape[-1]:
        check_gradient(ops.det, x, tol=1e-5)


def test_det_of_half_types_is_computed_in_float32() -> None:
    x = RNG.standard_normal((4, 3, 3)).astype(np.float16)
    got = ops.det(burn.tensor(x))
    assert got.dtype == burn.float16
    expected = np.linalg.det(x.astype(np.float32)).astype(np.float16)
    np.testing.assert_array_equal(got.numpy(), expected)


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_gradient_of_singular_matrices(rank: int) -> None:
    x = RNG.standard_normal((2, 4, rank)) @ RNG.standard_normal((2, rank, 4))
    check_gradient(ops.det, x, order=1)
    minors = [
        np.delete(np.delete(x[1], i, 0), j, 1) for i in range(4) for j in range(4)
    ]
    signs = np.array([(-1) ** (i + j) for i in range(4) for j in range(4)])
    expected = (signs * np.linalg.det(np.array(minors))).reshape(4, 4)
    got = ops.cofactor(burn.tensor(x)).numpy()[1]
    np.testing.assert_allclose(got, expected, atol=1e-12)
