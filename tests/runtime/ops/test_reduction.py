"""Reductions by value and by gradient, zeros and halves included."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import burn
from burn import ops
from tests.runtime.gradcheck import check_gradient

RNG = np.random.default_rng(13)
X = RNG.standard_normal((3, 4, 5))
AXES = [None, 1, (0, 2), (-1,)]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min"])
def test_reductions(name: str, axis: Any, keepdims: bool) -> None:
    reduce = getattr(ops, name)
    actual = reduce(burn.tensor(X), axis, keepdims=keepdims)
    expected = getattr(np, name)(X, axis=axis, keepdims=keepdims)
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-12)
    check_gradient(lambda x: reduce(x, axis, keepdims=keepdims), X)


@pytest.mark.parametrize("zeros", [1, 2])
def test_gradient_of_a_product_with_zeros(zeros: int) -> None:
    x = X.copy()
    x[1, :zeros, 2] = 0.0
    for axis in (None, 1, (2, 0)):
        check_gradient(lambda x, a=axis: ops.prod(x, a), x)


@pytest.mark.parametrize("axis", AXES)
def test_any_and_all(axis: Any) -> None:
    x = X > -1.0
    for name in ("any", "all"):
        actual = getattr(ops, name)(burn.tensor(x), axis, keepdims=True)
        assert actual.dtype == burn.bool_
        expected = getattr(np, name)(x, axis=axis, keepdims=True)
        np.testing.assert_array_equal(actual.numpy(), expected)


@pytest.mark.parametrize("axis", AXES)
def test_variance_and_norms(axis: Any) -> None:
    x = burn.tensor(X)
    for correction in (0, 1):
        actual = ops.var(x, axis, correction=correction)
        expected = np.var(X, axis=axis, ddof=correction)
        np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-12)
    np.testing.assert_allclose(ops.reduce_l1(x, axis).numpy(), np.sum(np.abs(X), axis))
    np.testing.assert_allclose(
        ops.reduce_l2(x, axis).numpy(), np.sqrt(np.sum(X * X, axis))
    )
    check_gradient(lambda x: ops.var(x, axis, keepdims=True), X)
    check_gradient(lambda x: ops.reduce_l1(x, axis), X)
    check_gradient(lambda x: ops.reduce_l2(x, axis), X)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_halves_accumulate_in_float32(dtype: type) -> None:
    x = burn.tensor(np.ones((2, 4096, 3), dtype))
    assert ops.sum(x, 1).numpy().astype(np.float32).tolist() == [[4096.0] * 3] * 2
    assert ops.mean(x, (0, 1)).dtype == np.dtype(dtype)


def test_extremes_of_nothing_are_identities() -> None:
    empty = burn.tensor(np.zeros((2, 0, 3), np.float32))
    assert ops.max(empty, 1).tolist() == [[-np.inf] * 3] * 2
    assert ops.min(empty, 1, keepdims=True).shape == (2, 1, 3)
    bools = burn.tensor(np.zeros((0,), np.bool_))
    assert ops.max(bools).item() is False


@pytest.mark.parametrize("shape, axis", [((50_001, 3), 0), ((2, 2050, 6), (0, 1))])
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sums_of_many_rows_are_as_exact_as_those_of_columns(
    name: str, shape: tuple[int, ...], axis: Any
) -> None:
    x = np.full(shape, 0.1, np.float32)
    expected = getattr(np, name)(x.astype(np.float64), axis=axis)
    reduce = burn.compile(lambda x: getattr(ops, name)(x, axis))
    for result in (getattr(ops, name)(burn.tensor(x), axis), reduce(burn.tensor(x))):
        np.testing.assert_allclose(result.numpy(), expected, rtol=2e-6)
