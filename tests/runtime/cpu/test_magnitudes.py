"""Checks of magnitudes, which are quick where a sum of squares shows enough."""

from math import inf, nan
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cpu.bind.finite import NotFiniteError
from burn.backend.cpu.bind.magnitudes import (
    check_within,
    is_within,
    row_sum_bound,
)
from tests.runtime.onednn import normal
from tests.runtime.programs import program_of

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in dot")
SHAPES = [(), (1,), (7,), (3, 1, 5), (2, 3, 4, 5), (101, 100)]


def extremes_are_within(array: Any, limit: float) -> bool:
    """The definition, without a sum."""
    return bool(np.all(np.abs(array.astype(np.float64)) <= limit))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "number", [0.0, 1.0, -9.99, 10.0, -10.01, 6e4, -6e4, inf, -inf, nan]
)
def test_one_element_decides(dtype: Any, shape: tuple[int, ...], number: float) -> None:
    array = np.full(shape, 0.5, dtype)
    array[(-1,) * array.ndim] = number
    limit = 10.0
    assert is_within(array, limit) == extremes_are_within(array, limit)


@pytest.mark.parametrize("limit", [1e9, 1e25, 3e38])
@pytest.mark.parametrize("number", [1e8, 1e24, -2e30, 3.3e38, inf, nan])
def test_squares_that_overflow_tell_nothing(limit: float, number: float) -> None:
    for dtype in (np.float32, np.float64):
        array = np.array([1.0, number, -1.0], dtype)
        assert is_within(array, limit) == extremes_are_within(array, limit)


def test_the_limit_of_a_double_may_have_an_infinite_square() -> None:
    assert is_within(np.array([1e199]), 1e200)
    assert not is_within(np.array([1e201]), 1e200)


def test_no_element_is_within() -> None:
    assert is_within(np.empty((3, 0, 2), np.float32), 1.0)


def test_checks_see_every_element_of_any_order_of_memory() -> None:
    memory = np.zeros((4, 5, 6), np.float32)
    views = [memory, memory.transpose(2, 0, 1), memory[:, ::2], memory[::-1, :, 1:3]]
    views.append(np.broadcast_to(memory[:1], (3, 4, 5, 6)[1:]))
    for view in views:
        call = check_within(view, 10.0)
        call()
        for number in (11.0, nan):
            memory[0, 0, 2], before = number, memory[0, 0, 2]
            if extremes_are_within(view, 10.0):
                call()
            else:
                with pytest.raises(NotFiniteError):
                    call()
            memory[0, 0, 2] = before


@pytest.mark.parametrize("number", [1e37, inf, nan])
def test_a_plan_is_left_when_a_value_inside_is_too_large(number: float) -> None:
    weight = burn.tensor(np.full((4, 4), 2.0, np.float32))

    def layer(x: Any) -> Any:
        return ops.relu(ops.linear(ops.relu(ops.linear(x, weight)), weight))

    compiled, x = burn.compile(layer), np.ones((2, 3, 4), np.float32)
    for value in (1.0, number, 2.0, number):
        x = x.copy()
        x[1, 2, 3] = value
        expected = layer(burn.tensor(x)).numpy()
        np.testing.assert_array_equal(compiled(burn.tensor(x)).numpy(), expected)


def test_zero_times_an_unknown_number_is_unknown() -> None:
    zeros, row = burn.tensor(np.zeros((4, 4), np.float32)), normal(2, 4, 4)

    def product(x: Any) -> Any:
        return (ops.exp(x) * zeros + x) @ ops.transpose(x, 1, 2)

    compiled = burn.compile(product)
    for value in (1.0, 0.5, 200.0, 2.0):  # exp(200) is infinite, and NaN times zero
        x = row.copy()
        x[0, 1, 2] = value
        expected = product(burn.tensor(x)).numpy()
        np.testing.assert_allclose(
            compiled(burn.tensor(x)).numpy(), expected, rtol=1e-5, atol=1e-5
        )
    program_of(compiled).run([row])  # raises if the plan is for no numbers


@pytest.mark.parametrize(
    "shape",
    [(1,), (1, 1), (5, 3), (4, 4, 4), (300, 7, 71), (2, 70_000), (0, 3), (3, 0)],
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_bounds_of_row_sums(shape: tuple[int, ...], dtype: Any) -> None:
    array = normal(*shape).astype(dtype)
    wide = array.astype(np.float64)
    axes = tuple(range(1, array.ndim))
    total = np.abs(wide).sum(axis=axes).max(initial=0.0)
    norm = np.sqrt((wide**2).sum(axis=axes)).max(initial=0.0)
    root = np.sqrt(max(array.size // max(len(array), 1), 1))
    for given in (array, array[::-1], np.asfortranarray(array)):
        bound = row_sum_bound(given)
        assert 0.999999 * total <= bound <= 1.000001 * norm * root + 1e-12
    for number in (nan, inf, -inf) if array.size else ():
        array[(-1,) * array.ndim] = number
        total = row_sum_bound(array)
        assert np.isnan(total) if np.isnan(number) else total == inf


@pytest.mark.parametrize("number", [1e-30, 1e-19, 1e19, 3e38])
def test_bounds_of_row_sums_hold_where_squares_are_no_normal_numbers(
    number: float,
) -> None:
    array = np.full((2, 9), number, np.float32)
    assert row_sum_bound(array) >= 9 * number * 0.999999


@pytest.mark.parametrize("norm", [ops.layer_norm, ops.rms_norm])
def test_norms_declare_their_bounds(norm: Any) -> None:
    x, weight = 1e3 * np.eye(4, 16, dtype=np.float32), 3 * normal(16)
    call = SimpleNamespace(args=(x, weight), static={}, shapes=(x.shape,))
    operands = SimpleNamespace(bound=lambda arg: 0.0 if arg is None else abs(arg).max())
    bound = norm.bound(call, operands)
    result = norm(burn.tensor(x), burn.tensor(weight)).numpy()
    assert abs(result).max() <= bound < inf
