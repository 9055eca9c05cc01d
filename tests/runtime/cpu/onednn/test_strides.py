"""Axes of one element have any stride: products of matrices do not depend on it."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import burn
from burn import Autodiff, Cpu, ops
from burn.backend.cpu.onednn.binding import engine
from tests.runtime.onednn import assert_close, needs_onednn, normal

pytestmark = needs_onednn
EXTENTS = (1, 2, 5)


def whole(batch: int, rows: int, columns: int, seed: int) -> Any:
    return normal(batch, rows, columns, seed=seed)


def transposed(batch: int, rows: int, columns: int, seed: int) -> Any:
    return normal(batch, columns, rows, seed=seed).transpose(0, 2, 1)


def last_in_batch(batch: int, rows: int, columns: int, seed: int) -> Any:
    return normal(rows, columns, batch, seed=seed).transpose(2, 0, 1)


def heads(batch: int, rows: int, columns: int, seed: int) -> Any:
    return normal(rows, batch, columns, seed=seed).transpose(1, 0, 2)


def with_gaps(batch: int, rows: int, columns: int, seed: int) -> Any:
    return normal(2 * batch, 2 * rows, columns + 3, seed=seed)[::2, ::2, :columns]


def repeated(batch: int, rows: int, columns: int, seed: int) -> Any:
    return np.broadcast_to(normal(1, 1, columns, seed=seed), (batch, rows, columns))


VIEWS = (whole, transposed, last_in_batch, heads, with_gaps, repeated)
#: What follows a product, in a plan that may write the result in another order.
ENDS: tuple[Callable[[Any], Any], ...] = (
    lambda z: z,
    lambda z: ops.tanh(ops.transpose(z, 1, 2)),
    lambda z: ops.permute(z, (2, 0, 1)) * 2.0,
    lambda z: ops.transpose(z, 0, 1) + 1.0,
    lambda z: ops.relu(z * 0.5),
)


@pytest.mark.parametrize("batch", EXTENTS)
@pytest.mark.parametrize("rows", EXTENTS)
@pytest.mark.sampled(6)
def test_products(batch: int, rows: int) -> None:
    kinds = list(product(range(len(VIEWS)), range(len(VIEWS)), range(len(ENDS))))
    for number, (inner, columns) in enumerate(product(EXTENTS, EXTENTS)):
        for left, right, end in kinds[number::37]:
            x = VIEWS[left](batch, rows, inner, seed=1)
            y = VIEWS[right](batch, inner, columns, seed=2)
            compare(lambda x, y, end=end: ENDS[end](x @ y), x, y)


@pytest.mark.parametrize("shared", ["x", "y", "matrix", "both"])
@pytest.mark.parametrize("batch", EXTENTS)
@pytest.mark.sampled(8)
def test_products_that_are_broadcast(shared: str, batch: int) -> None:
    for rows, inner, columns in product(EXTENTS, repeat=3):
        x = whole(1 if shared in ("x", "both") else batch, rows, inner, seed=1)
        y = whole(1 if shared in ("y", "both") else batch, inner, columns, seed=2)
        y = y[0] if shared == "matrix" else y
        for end in ENDS:
            compare(lambda x, y, end=end: end(x @ y), x, y)


@pytest.mark.parametrize("batch", [(2, 1), (1, 2), (1, 1), (3, 1, 2)])
def test_rows_that_are_added_to_products(batch: tuple[int, ...]) -> None:
    for rows, inner, columns in product(EXTENTS, repeat=3):
        x = normal(*batch, rows, inner, seed=1)
        y = normal(*batch, columns, inner, seed=2)
        row = normal(*batch[:-1], 1, 1, columns, seed=3)
        compare(lambda x, y, row: x @ ops.transpose(y, -1, -2) * 0.5 + row, x, y, row)


@pytest.mark.parametrize("count", EXTENTS)
def test_gradients_of_columns(count: int) -> None:
    """A state space model multiplies by matrices of one row or one column."""
    w, v = (burn.from_numpy(normal(4, count, seed=seed)) for seed in (1, 2))
    backend = Autodiff(Cpu())

    def gradients(x: Any) -> Any:
        first, second = (y.to(backend).require_grad() for y in (w, v))
        y = ops.transpose(x @ second, 1, 2)
        y = first @ (y if count == 1 else y[:, :count])
        result = ops.sum(ops.tanh(y)).backward()
        return ops.concat([result[first], result[second]], 0)

    compare(gradients, normal(2, 6, 4, seed=3))
    compare(gradients, normal(1, 6, 4, seed=3))


def compare(function: Callable[..., Any], *arrays: Any) -> None:
    """Assert that calls of oneDNN and of a plan give the results of NumPy."""
    given = [burn.from_numpy(x) for x in arrays]
    with engine.numpy_only():
        expected = function(*given).numpy()
    with engine.whatever_size():
        assert_close(function(*given).numpy(), expected)
    plan = burn.compile(function)
    for _ in range(3):
        assert_close(plan(*given).numpy(), expected)
    assert not plan.notes
