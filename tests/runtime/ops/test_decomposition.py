"""Decompositions of matrices by what they put together again, and by gradient."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from tests.runtime.gradcheck import check_gradient

Array = np.ndarray[Any, Any]
SHAPES = [(3, 3), (2, 4, 4), (1, 1), (5, 3), (2, 3, 5), (2, 0, 3, 3)]
SQUARE = [shape for shape in SHAPES if shape[-1] == shape[-2]]


def drawn(*shape: int) -> Array:
    return np.random.default_rng(7).standard_normal(shape)


def positive(x: Any) -> Any:
    return ops.matmul(x, x.mT) + np.eye(x.shape[-2]) * 2.0


def close(found: Any, expected: Array) -> None:
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", SQUARE)
def test_cholesky(shape: tuple[int, ...], upper: bool) -> None:
    x = positive(burn.tensor(drawn(*shape)))
    made = ops.cholesky(x, upper=upper)
    close(made.mT @ made if upper else made @ made.mT, x.numpy())
    triangle = ops.trilu(made, 0, upper=upper)
    np.testing.assert_array_equal(made.numpy(), triangle.numpy())
    if x.size:
        check_gradient(lambda x: ops.cholesky(positive(x), upper=upper), drawn(*shape))


def test_cholesky_reads_one_triangle() -> None:
    x = positive(burn.tensor(drawn(3, 3))).numpy()
    lower = ops.cholesky(burn.tensor(np.tril(x)))
    np.testing.assert_array_equal(lower.numpy(), ops.cholesky(burn.tensor(x)).numpy())


def test_a_matrix_that_is_not_positive_is_an_error() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        ops.cholesky(burn.tensor(-np.eye(3)))


@pytest.mark.parametrize("shape", SQUARE)
def test_eigh(shape: tuple[int, ...]) -> None:
    x = positive(burn.tensor(drawn(*shape)))
    values, vectors = ops.eigh(x)
    close((vectors * ops.unsqueeze(values, -2)) @ vectors.mT, x.numpy())
    if x.size:
        parts: list[Callable[..., Any]] = [
            lambda x: ops.eigh(positive(x)),
            lambda x: ops.eigh(positive(x))[0],
            lambda x: ops.eigh(positive(x), upper=True)[1],
        ]
        for part in parts:
            check_gradient(part, drawn(*shape), tol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_svd(shape: tuple[int, ...]) -> None:
    x = drawn(*shape)
    left, values, right = ops.svd(burn.tensor(x), full_matrices=False)
    close((left * ops.unsqueeze(values, -2)) @ right, x)
    full = ops.svd(burn.tensor(x))
    assert full[0].shape == (*shape[:-1], shape[-2])
    assert full[2].shape == (*shape[:-2], shape[-1], shape[-1])
    if x.size:
        for place in (0, 1, 2):
            check_gradient(
                lambda x, place=place: ops.svd(x, full_matrices=False)[place],
                x,
                tol=1e-4,
            )
        check_gradient(lambda x: ops.svd(x)[1], x, tol=1e-4)


def test_vectors_outside_of_the_matrix_have_no_gradient() -> None:
    tape = burn.Autodiff(burn.Cpu())
    x = burn.from_numpy(drawn(4, 2), tape).require_grad()
    left = ops.svd(x)[0]
    with pytest.raises(ValueError, match="full_matrices=False"):
        ops.sum(left).backward()
    with pytest.raises(ValueError, match="complete=False"):
        ops.sum(ops.qr(x, complete=True)[0]).backward()


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_qr(shape: tuple[int, ...], complete: bool) -> None:
    x = drawn(*shape)
    left, right = ops.qr(burn.tensor(x), complete=complete)
    close(left @ right, x)
    close(
        left.mT @ left,
        np.broadcast_to(np.eye(left.shape[-1]), left.mT.shape[:-1] + left.shape[-1:]),
    )
    np.testing.assert_array_equal(right.numpy(), np.triu(right.numpy()))
    if x.size and not (complete and shape[-2] > shape[-1]):
        check_gradient(lambda x: ops.qr(x, complete=complete), x)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_results_are_of_the_operands_dtype(dtype: Any) -> None:
    x = burn.tensor((np.eye(3) * 2 + 0.1).astype(dtype))
    results = [ops.cholesky(x), *ops.eigh(x), *ops.svd(x), *ops.qr(x)]
    results += [ops.pinv(x), ops.matrix_exp(x), ops.solve(x, x), *ops.slogdet(x)]
    assert {result.dtype for result in results} == {np.dtype(dtype)}
