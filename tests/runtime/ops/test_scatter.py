"""Scatters by value and by gradient."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from tests.runtime.gradcheck import check_gradient
from tests.runtime.onnx_node import run_node as run_opset

run_node = partial(run_opset, opset=21)

RNG = np.random.default_rng(3)
X = RNG.standard_normal((4, 5, 6)).astype(np.float32)
REDUCTIONS = ["none", "add", "mul", "min", "max"]


def distinct(high: int, shape: tuple[int, int, int], axis: int) -> Any:
    """Indices below ``high``, none twice along ``axis``."""
    order = np.argsort(RNG.random([*shape[:axis], high, *shape[axis + 1 :]]), axis)
    return np.take(order, range(shape[axis]), axis)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_scatter_elements(axis: int, reduction: str) -> None:
    shape = (2, 4, 3)
    if reduction == "none":
        indices = distinct(X.shape[axis], shape, axis)
    else:
        indices = RNG.integers(-4, 4, shape)
    updates = RNG.standard_normal(shape).astype(np.float32)
    inputs: list[Any] = [X, indices, updates]
    expected = run_node("ScatterElements", *inputs, axis=axis, reduction=reduction)[0]
    found = ops.scatter_elements(
        *map(burn.tensor, inputs), axis=axis, reduction=reduction
    )
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
    check_gradient(
        lambda x, u: ops.scatter_elements(
            x, indices, u, axis=axis, reduction=reduction
        ),
        X,
        updates,
    )


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_scatter_nd(depth: int, reduction: str) -> None:
    if reduction == "none":
        flat = RNG.permutation(np.prod(X.shape[:depth]))[:3]
        indices = np.stack(np.unravel_index(flat, X.shape[:depth]), -1)
    else:
        indices = RNG.integers(-2, 2, (2, 3, depth))
    updates = RNG.standard_normal(indices.shape[:-1] + X.shape[depth:])
    inputs: list[Any] = [X, indices, updates.astype(np.float32)]
    expected = run_node("ScatterND", *inputs, reduction=reduction)[0]
    found = ops.scatter_nd(*map(burn.tensor, inputs), reduction=reduction)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
    check_gradient(
        lambda x, u: ops.scatter_nd(x, indices, u, reduction=reduction), X, updates
    )


def test_unknown_reduction_is_an_error() -> None:
    x = burn.tensor(X)
    with pytest.raises(ValueError, match="'mean'"):
        ops.scatter_nd(x, np.zeros((1, 3), np.int64), X[0, 0, :1], reduction="mean")
