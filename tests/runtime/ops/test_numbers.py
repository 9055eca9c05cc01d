"""Integers to a power, bits, text and functions of angles, by value."""

import numpy as np
import pytest

import burn
from burn import dtypes, ops
from tests.runtime.gradcheck import check_gradient


def test_integers_to_a_negative_power_are_rounded_towards_zero() -> None:
    x = burn.tensor(np.array([[2, -2, 1, -1, -1, 3]], np.int32))
    y = burn.tensor(np.array([[-1, -1, -5, -3, -4, 2]], np.int32))
    assert (x**y).tolist() == [[0, 0, 1, -1, 1, 9]]


@pytest.mark.parametrize(
    ("shift", "expected"),
    [
        (ops.bitwise_left_shift, [2, -8, 0, 0]),
        (ops.bitwise_right_shift, [0, -2, -1, 0]),
    ],
)
def test_shifts_beyond_all_bits_leave_the_sign(shift: object, expected: object) -> None:
    x = burn.tensor(np.array([1, -4, -3, 7], np.int8))
    y = burn.tensor(np.array([1, 1, 9, -1], np.int8))
    assert callable(shift)
    assert shift(x, y).tolist() == expected


def test_numbers_become_text_and_text_numbers() -> None:
    x = burn.tensor(np.array([[0.1, 1e-5], [-np.inf, np.nan]], np.float32))
    text = x.cast(dtypes.string)
    assert text.tolist() == [["0.1", "9.9999997e-06"], ["-INF", "NaN"]]
    np.testing.assert_array_equal(text.cast(dtypes.float32).numpy(), x.numpy())
    truth = burn.tensor(np.array([True, False])).cast(dtypes.string)
    assert truth.tolist() == ["1", "0"]
    assert truth.cast(dtypes.bool_).tolist() == [True, False]


@pytest.mark.parametrize(
    ("function", "low", "high"),
    [
        (ops.tan, -1.2, 1.2),
        (ops.asin, -0.9, 0.9),
        (ops.acos, -0.9, 0.9),
        (ops.atan, -3.0, 3.0),
        (ops.sinh, -2.0, 2.0),
        (ops.cosh, -2.0, 2.0),
        (ops.asinh, -3.0, 3.0),
        (ops.acosh, 1.2, 4.0),
        (ops.atanh, -0.9, 0.9),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_gradients_to_second_order(function: object, low: float, high: float) -> None:
    x = np.random.default_rng(3).uniform(low, high, (2, 3, 4))
    assert callable(function)
    check_gradient(function, x)
