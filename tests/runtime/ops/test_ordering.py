"""Orders and running totals by value and by gradient."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from tests.runtime.gradcheck import check_gradient
from tests.runtime.onnx_node import run_node as run_opset

run_node = partial(run_opset, opset=21)

RNG = np.random.default_rng(9)
X = RNG.standard_normal((4, 5, 6)).astype(np.float32)
TIES = RNG.integers(0, 3, (4, 5, 6)).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("largest", [True, False])
def test_topk(axis: int, largest: bool) -> None:
    for x in (X, TIES):
        expected = run_node(
            "TopK", x, np.array([3]), outputs=2, axis=axis, largest=int(largest)
        )
        found = ops.topk(burn.tensor(x), burn.tensor([3]), axis=axis, largest=largest)
        for got, want in zip(found, expected, strict=True):
            np.testing.assert_array_equal(got.numpy(), want)
    check_gradient(lambda x: ops.topk(x, 2, axis=axis, largest=largest), X)


def test_topk_of_unsigned_and_of_too_many() -> None:
    x = np.array([[3, 0, 255], [7, 7, 1]], np.uint8)
    values, indices = ops.topk(burn.tensor(x), 2)
    assert values.tolist() == [[255, 3], [7, 7]]
    assert indices.tolist() == [[2, 0], [0, 1]]
    with pytest.raises(ValueError, match="k in"):
        ops.topk(burn.tensor(x), 4)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("select_last", [False, True])
@pytest.mark.parametrize("keepdims", [False, True])
def test_extreme_places(
    name: str, axis: int, select_last: bool, keepdims: bool
) -> None:
    attrs = {"axis": axis, "keepdims": int(keepdims)}
    (expected,) = run_node(
        {"argmax": "ArgMax", "argmin": "ArgMin"}[name],
        *[TIES],
        select_last_index=int(select_last),
        **attrs,
    )
    find = getattr(ops, name)
    found = find(burn.tensor(TIES), axis, keepdims=keepdims, select_last=select_last)
    assert found.dtype == burn.int64
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("select_last", [False, True])
@pytest.mark.parametrize("find", [ops.argmax, ops.argmin])
def test_extreme_places_of_nothing(find: Any, select_last: bool) -> None:
    """An empty axis has no largest element, but no result asks for one here."""
    nothing = burn.tensor(np.zeros((9, 0, 0), np.float32))
    found = find(nothing, 1, keepdims=True, select_last=select_last)
    assert (found.dtype, found.shape) == (burn.int64, (9, 1, 0))


def test_extreme_place_of_all() -> None:
    assert ops.argmax(burn.tensor(X)).item() == X.argmax()
    assert ops.argmin(burn.tensor(X), keepdims=True).tolist() == [[[X.argmin()]]]


@pytest.mark.parametrize("descending", [False, True])
def test_sort(descending: bool) -> None:
    sign = -1 if descending else 1
    order = np.argsort(sign * TIES, 1, kind="stable")
    found = ops.argsort(burn.tensor(TIES), 1, descending=descending)
    np.testing.assert_array_equal(found.numpy(), order)
    values = ops.sort(burn.tensor(X), 1, descending=descending).numpy()
    np.testing.assert_array_equal(values, sign * np.sort(sign * X, 1))
    check_gradient(lambda x: ops.sort(x, 1, descending=descending), X)


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_totals(axis: int, exclusive: bool, reverse: bool) -> None:
    options = {"exclusive": exclusive, "reverse": reverse}
    (expected,) = run_node(
        "CumSum", X, np.array(axis), exclusive=int(exclusive), reverse=int(reverse)
    )
    found = ops.cumsum(burn.tensor(X), burn.tensor(axis), **options)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)
    check_gradient(lambda x: ops.cumsum(x, axis, **options), X)
    zeros = np.where(np.abs(X) < 0.5, 0, X)
    found = ops.cumprod(burn.tensor(zeros), axis, **options)
    np.testing.assert_allclose(
        found.numpy(), naive_cumprod(zeros, axis, exclusive, reverse), rtol=1e-5
    )
    check_gradient(lambda x: ops.cumprod(x, axis, **options), zeros)


def naive_cumprod(
    x: np.ndarray, axis: int, exclusive: bool, reverse: bool
) -> np.ndarray:
    rows = np.moveaxis(x, axis, 0)
    out = np.ones_like(rows)
    for i in range(len(rows)):
        for j in range(len(rows)):
            before = j > i if reverse else j < i
            if before or (i == j and not exclusive):
                out[i] *= rows[j]
    return np.moveaxis(out, 0, axis)


def test_running_sum_of_integers_keeps_the_dtype() -> None:
    x = burn.tensor(np.arange(6, dtype=np.int32))
    assert ops.cumsum(x, 0).dtype == burn.int32
