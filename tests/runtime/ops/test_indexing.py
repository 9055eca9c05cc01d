"""Indexing, slices and gathers by value and by gradient."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from tests.runtime.gradcheck import check_gradient
from tests.runtime.onnx_node import run_node as run_opset

run_node = partial(run_opset, opset=21)

RNG = np.random.default_rng(11)
X = RNG.standard_normal((4, 5, 6)).astype(np.float32)
I64 = np.iinfo(np.int64)

KEYS: list[Any] = [
    2,
    (slice(None, None, -2), 1),
    (..., slice(1, -1)),
    (None, 1, ..., None),
    np.array([[0, 3, 0], [1, -1, 0]]),
    (slice(None), np.array([4, 4, 0]), slice(0, 6, 2)),
    (np.array([1, 1]), slice(None), np.array([5, 5])),
    X > 0.3,
    (X[:, :, 0] > 0, 2),
    [1, 1, 2],
]


def as_tensors(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(map(as_tensors, key))
    return burn.tensor(key) if isinstance(key, np.ndarray) else key


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_getitem(key: Any) -> None:
    found = burn.tensor(X)[as_tensors(key)]
    np.testing.assert_array_equal(found.numpy(), X[key])
    check_gradient(lambda x: x[as_tensors(key)], X)


def test_getitem_reads_bounds_from_tensors() -> None:
    found = burn.tensor(X)[burn.tensor(1) : burn.tensor(3), burn.tensor(-1)]
    np.testing.assert_array_equal(found.numpy(), X[1:3, -1])


SLICES = [
    ([1, -3], [3, I64.max], [0, 2], None),
    ([I64.max, -1], [I64.min, -5], [1, -1], [-1, -2]),
    ([5, I64.min], [0, 2], [2, 0], [-3, 1]),
    ([1, 0, 2], [4, 100, -1], None, [2, 3, 1]),
    ([3], [1], [0], [1]),
]


@pytest.mark.parametrize(("starts", "ends", "axes", "steps"), SLICES)
def test_slice(starts: Any, ends: Any, axes: Any, steps: Any) -> None:
    operands = [None if o is None else np.array(o) for o in (starts, ends, axes, steps)]
    (expected,) = run_node("Slice", X, *operands)
    tensors = [None if o is None else burn.tensor(o) for o in operands]
    np.testing.assert_array_equal(ops.slice(burn.tensor(X), *tensors).numpy(), expected)
    check_gradient(lambda x: ops.slice(x, starts, ends, axes, steps), X)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(
    "indices", [np.array([[0, -1, 2], [0, 0, 3]]), np.array(1), np.array([], np.int64)]
)
def test_take(axis: int, indices: Any) -> None:
    (expected,) = run_node("Gather", X, indices, axis=axis)
    found = ops.take(burn.tensor(X), burn.tensor(indices), axis)
    np.testing.assert_array_equal(found.numpy(), expected)
    check_gradient(lambda x: ops.take(x, indices, axis), X)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_elements(axis: int) -> None:
    indices = RNG.integers(-4, 4, (4, 5, 6))
    (expected,) = run_node("GatherElements", X, indices, axis=axis)
    found = ops.gather_elements(burn.tensor(X), burn.tensor(indices), axis)
    np.testing.assert_array_equal(found.numpy(), expected)
    check_gradient(lambda x: ops.gather_elements(x, indices, axis), X)


def test_gather_elements_of_fewer_places() -> None:
    indices = RNG.integers(0, 5, (2, 7, 3))
    found = ops.gather_elements(burn.tensor(X), burn.tensor(indices), 1)
    np.testing.assert_array_equal(
        found.numpy(), np.take_along_axis(X[:2, :, :3], indices, 1)
    )
    check_gradient(lambda x: ops.gather_elements(x, indices, 1), X)


@pytest.mark.parametrize(
    ("batch_dims", "shape", "high"),
    [(0, (3, 2), (4, 5)), (0, (2, 2, 3), (4, 5, 6)), (1, (4, 3, 1), (5,))]
    + [(2, (4, 5, 1), (6,)), (1, (4, 2), (5, 6)), (0, (2, 1), (4,))],
)
def test_gather_nd(batch_dims: int, shape: Any, high: Any) -> None:
    indices = RNG.integers([-h for h in high], high, shape)
    (expected,) = run_node("GatherND", X, indices, batch_dims=batch_dims)
    found = ops.gather_nd(burn.tensor(X), burn.tensor(indices), batch_dims)
    np.testing.assert_array_equal(found.numpy(), expected)
    check_gradient(lambda x: ops.gather_nd(x, indices, batch_dims), X)


def test_nonzero_and_compress() -> None:
    x = np.where(X > 0, X, 0)
    np.testing.assert_array_equal(
        ops.nonzero(burn.tensor(x)).numpy(), run_node("NonZero", x)[0]
    )
    for condition, axis in (([True, False, True], 1), ([False] * 9 + [True] * 9, None)):
        mask = np.array(condition)
        attrs = {} if axis is None else {"axis": axis}
        (expected,) = run_node("Compress", X, mask, **attrs)
        found = ops.compress(burn.tensor(X), burn.tensor(mask), axis)
        np.testing.assert_array_equal(found.numpy(), expected)
        check_gradient(lambda x, m=mask, a=axis: ops.compress(x, m, a), X)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_hot(axis: int) -> None:
    indices = RNG.integers(-9, 9, (2, 3))
    values = np.array([0.25, 3.0], np.float32)
    expected = run_node("OneHot", indices, np.array(7), values, axis=axis)[0]
    found = ops.one_hot(
        burn.tensor(indices), burn.tensor(7), burn.tensor(values), axis=axis
    )
    np.testing.assert_array_equal(found.numpy(), expected)
    check_gradient(lambda v: ops.one_hot(indices, 7, v, axis=axis), values)
    plain = ops.one_hot(burn.tensor(indices), 7)
    assert plain.dtype == burn.float32
    assert plain.shape == (2, 3, 7)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(mode: str) -> None:
    x = RNG.standard_normal((2, 12, 3, 4)).astype(np.float32)
    (expected,) = run_node("DepthToSpace", x, blocksize=2, mode=mode)
    found = ops.depth_to_space(burn.tensor(x), blocksize=2, mode=mode)
    np.testing.assert_array_equal(found.numpy(), expected)


def test_space_to_depth() -> None:
    x = RNG.standard_normal((2, 3, 6, 4)).astype(np.float32)
    (expected,) = run_node("SpaceToDepth", x, blocksize=2)
    found = ops.space_to_depth(burn.tensor(x), blocksize=2)
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("width", [8, 80])
def test_many_repeated_rows_sum_up(width: int) -> None:
    backend = burn.Autodiff(burn.Cpu())
    table = burn.tensor(np.zeros((50, width), np.float32), backend).require_grad()
    indices = RNG.integers(-50, 50, (40, 30))
    weight = RNG.standard_normal((40, 30, width)).astype(np.float32)
    expected = np.zeros((50, width))
    np.add.at(expected, indices % 50, weight.astype(np.float64))
    for found in (ops.take(table, indices, 0), table[burn.tensor(indices)]):
        grads = ops.sum(found * weight).backward()
        np.testing.assert_allclose(grads[table].numpy(), expected, atol=1e-4)
