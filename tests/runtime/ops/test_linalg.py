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


@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 4, 4), (3, 1, 1)])
def test_slogdet(shape: tuple[int, ...]) -> None:
    x = RNG.standard_normal(shape)
    for found, expected in zip(
        ops.slogdet(burn.tensor(x)), np.linalg.slogdet(x), strict=True
    ):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    check_gradient(ops.slogdet, x, tol=1e-4)


def test_slogdet_of_what_overflows_and_of_singular_matrices() -> None:
    sign, size = ops.slogdet(
        burn.tensor(np.stack([np.eye(9) * 1e99, np.zeros((9, 9))]))
    )
    np.testing.assert_array_equal(sign.numpy(), [1, 0])
    np.testing.assert_allclose(size.numpy(), [9 * 99 * np.log(10), -np.inf])


@pytest.mark.parametrize(
    ("a", "b"), [((3, 3), (3, 2)), ((2, 3, 3), (3, 1)), ((3, 3), (4, 3, 2))]
)
def test_solve(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = RNG.standard_normal(a) + 3 * np.eye(3), RNG.standard_normal(b)
    found = ops.solve(burn.tensor(x), burn.tensor(y)).numpy()
    np.testing.assert_allclose(x @ found, np.broadcast_to(y, found.shape), atol=1e-12)
    check_gradient(ops.solve, x, y)


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 5), (1, 1), (2, 0, 0)])
def test_solve_triangular(shape: tuple[int, ...], upper: bool, unit: bool) -> None:
    a = RNG.standard_normal(shape) + 3 * np.eye(shape[-1])
    b = RNG.standard_normal((*shape[:-1], 2))
    options = {"upper": upper, "unit": unit}
    found = ops.solve_triangular(burn.tensor(a), burn.tensor(b), **options).numpy()
    triangle = np.triu(a) if upper else np.tril(a)
    if unit:
        triangle = triangle * (1 - np.eye(shape[-1])) + np.eye(shape[-1])
    np.testing.assert_allclose(triangle @ found, b, atol=1e-12)
    if shape[-1]:
        check_gradient(lambda a, b: ops.solve_triangular(a, b, **options), a, b)


def test_a_zero_on_the_diagonal_gives_infinities() -> None:
    found = ops.solve_triangular(burn.tensor(np.zeros((1, 1))), burn.tensor([[2.0]]))
    np.testing.assert_array_equal(found.numpy(), [[np.inf]])


@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 40.0])
def test_matrix_exp(scale: float) -> None:
    x = RNG.standard_normal((3, 4, 4)) * scale
    x[1] *= 3  # another number of squarings
    values, vectors = np.linalg.eig(x + np.diag([0, 1e-6, 2e-6, 3e-6]))
    made = (vectors * np.exp(values)[..., None, :]) @ np.linalg.inv(vectors)
    found = ops.matrix_exp(burn.tensor(x)).numpy()
    np.testing.assert_allclose(found, made.real, rtol=1e-3, atol=1e-5 * abs(made).max())
    if scale == 1:
        check_gradient(ops.matrix_exp, x / 3)


@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (2, 2, 4)])
def test_pinv(shape: tuple[int, ...]) -> None:
    x = RNG.standard_normal(shape)
    np.testing.assert_allclose(
        ops.pinv(burn.tensor(x)).numpy(), np.linalg.pinv(x), rtol=1e-9, atol=1e-12
    )
    check_gradient(ops.pinv, x, tol=1e-4)


def test_small_singular_values_count_as_zero() -> None:
    x = burn.tensor(np.diag([4.0, 1.0, 1e-3]))
    kept = [
        np.count_nonzero(ops.pinv(x, **options).numpy())
        for options in ({}, {"rtol": 0.3}, {"atol": 1e-2}, {"atol": 2.0, "rtol": 0.0})
    ]
    assert kept == [3, 1, 2, 1]


def test_groups_of_rows() -> None:
    x, w = RNG.standard_normal((7, 3)), RNG.standard_normal((4, 3, 2))
    ends = np.array([2, 2, 5, 6], np.int32)
    found = ops.grouped_matmul(burn.tensor(x), burn.tensor(w), ends).numpy()
    expected = np.concatenate([x[:2] @ w[0], x[2:5] @ w[2], x[5:6] @ w[3], [[0, 0]]])
    np.testing.assert_allclose(found, expected)
    check_gradient(lambda x, w: ops.grouped_matmul(x, w, ends), x, w)
